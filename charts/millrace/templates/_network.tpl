{{/*
A component's NetworkPolicy. Takes
  root, component
  ingress      port name → peers (none: anybody), for its own ports
  egress       names of what it talks to: database, kafka, objects, kubernetes, internal, internet, names (of any zone)
  web          addresses that it asks by http or https, beside those
  annotations
  closed       true when nobody may call it, not even whoever monitors the others; it has no traces either
Every component looks up names.
*/}}
{{- define "millrace.networkPolicy" -}}
{{- $root := .root }}
{{- $policy := $root.Values.networkPolicy }}
{{- $addresses := dict
  "kafka" $root.Values.kafka.brokers
  "objects" (list (default "https://s3.amazonaws.com" $root.Values.objects.endpoint)) }}
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
      {{- with $policy.dns }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- range .egress }}
    {{- if has . (list "database" "kafka" "objects" "kubernetes") }}
    {{- $rule := index $policy . }}
    - ports:
        {{- range include "millrace.ports" (dict "ports" $rule.ports "addresses" (index $addresses . | default list)) | fromJsonArray }}
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
            except:
              [0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, 192.168.0.0/16,
              198.18.0.0/15, 224.0.0.0/4, 240.0.0.0/4]
        - ipBlock:
            cidr: ::/0
            except: ['::/96', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8']
    {{- else if eq . "names" }}
    - ports:
        {{- range include "millrace.ports" (dict "addresses" ($root.Values.dnsServers | default (list "any:53"))) | fromJsonArray }}
        - { port: {{ . }}, protocol: UDP }
        - { port: {{ . }}, protocol: TCP }
        {{- end }}
    {{- end }}
    {{- end }}
    {{- with .web }}
    - ports:
        {{- range include "millrace.ports" (dict "addresses" .) | fromJsonArray }}
        - { port: {{ . }}, protocol: TCP }
        {{- end }}
    {{- end }}
    {{- if and $root.Values.tracing.endpoint (not .closed) }}
    - ports: [{ port: {{ include "millrace.port" $root.Values.tracing.endpoint }}, protocol: TCP }]
      {{- with $policy.tracing.to }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
{{- end }}

{{/* The port of an address, `host:port` or a URL. */}}
{{- define "millrace.port" -}}
{{- $authority := regexReplaceAll "^https?://([^/]*).*$" . "${1}" -}}
{{- default (ternary "80" "443" (hasPrefix "http://" .)) (regexFind ":[0-9]+$" $authority | trimPrefix ":") }}
{{- end }}

{{/* Ports, and those of addresses, each once, as a JSON array. Takes { ports, addresses }. */}}
{{- define "millrace.ports" -}}
{{- $ports := list }}
{{- range .ports }}{{ $ports = append $ports (int .) }}{{ end }}
{{- range .addresses }}{{ $ports = append $ports (include "millrace.port" . | int) }}{{ end }}
{{- toJson (uniq $ports) }}
{{- end }}
