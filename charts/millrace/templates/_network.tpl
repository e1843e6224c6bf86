{{/*
A component's NetworkPolicy. Takes
  root, component
  ingress      port name → peers (none: anybody), for its own ports
  egress       names of what it talks to: database, kafka, objects, kubernetes, internal, internet, https, names (of any zone)
  annotations
  closed       true when nobody may call it, not even whoever monitors the others
Every component looks up names.
*/}}
{{- define "millrace.networkPolicy" -}}
{{- $root := .root }}
{{- $policy := $root.Values.networkPolicy }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "millrace.metadata" . | nindent 2 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  podSelector:
    matchLabels:
      {{- include "millrace.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- range $port, $peers := .ingress }}
    - ports: [{ port: {{ $port }}, protocol: TCP }]
      {{- with $peers }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- if not .closed }}
    - ports: [{ port: ops, protocol: TCP }]
      {{- with $policy.monitoring }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
  egress:
    - ports: [{ port: 53, protocol: UDP }, { port: 53, protocol: TCP }]
      {{- if not (has "names" .egress) }}
      {{- with $policy.dns }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
    {{- range .egress }}
    {{- if has . (list "database" "kafka" "objects" "kubernetes") }}
    {{- $rule := index $policy . }}
    - ports:
        {{- range $rule.ports }}
        - { port: {{ . }}, protocol: TCP }
        {{- end }}
      {{- with $rule.to }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- else if eq . "internal" }}
    - ports: [{ port: internal, protocol: TCP }]
      to:
        - podSelector:
            matchLabels:
              {{- include "millrace.selector" (dict "root" $root "component" "internal") | nindent 14 }}
    {{- else if eq . "internet" }}
    {{- /* What customers name is never inside: the service refuses it too, and this is the second wall. */}}
    - ports: [{ port: 443, protocol: TCP }, { port: 1024, endPort: 65535, protocol: TCP }]
      to:
        - ipBlock:
            cidr: 0.0.0.0/0
            except: [0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16]
        - ipBlock:
            cidr: ::/0
            except: ['::1/128', 'fc00::/7', 'fe80::/10']
    {{- else if eq . "https" }}
    - ports: [{ port: 443, protocol: TCP }]
    {{- end }}
    {{- end }}
    {{- if $root.Values.tracing.endpoint }}
    - ports: [{ port: {{ $root.Values.tracing.port }}, protocol: TCP }]
      {{- with $policy.tracing.to }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
{{- end }}
