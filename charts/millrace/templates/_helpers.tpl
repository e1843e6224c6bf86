{{/* Names. 40 characters leave room for a component, a pool and what controllers append. */}}
{{- define "millrace.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "millrace.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "millrace.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "millrace.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "millrace.instanceLabels" -}}
app.kubernetes.io/name: {{ include "millrace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of every object. */}}
{{- define "millrace.labels" -}}
{{ include "millrace.instanceLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* What selects the pods of a component; never changes over releases. Takes { root, component }. */}}
{{- define "millrace.selector" -}}
{{ include "millrace.instanceLabels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* metadata of a component's object. Takes { root, component }. */}}
{{- define "millrace.metadata" -}}
name: {{ include "millrace.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "millrace.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Takes { root, image }. */}}
{{- define "millrace.image" -}}
{{- $image := .root.Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}/{{ .image }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end }}

{{/* Where the certificates of `extraCa` are in every pod; empty when there are none. */}}
{{- define "millrace.extraCa" -}}
{{- if or .Values.extraCa.configMap .Values.extraCa.secret }}/etc/millrace/extra-ca{{ end }}
{{- end }}

{{/* Node.js reads them when it starts, and trusts them whatever it talks to by TLS. */}}
{{- define "millrace.env.extraCa" -}}
{{- with include "millrace.extraCa" . }}
- name: NODE_EXTRA_CA_CERTS
  value: {{ . }}/ca.crt
{{- end }}
{{- end }}

{{/* A pod does not start without them. */}}
{{- define "millrace.extraCaVolume" -}}
- name: extra-ca
  {{- $file := dict "key" .Values.extraCa.key "path" "ca.crt" }}
  {{- if .Values.extraCa.configMap }}
  configMap: {{ toJson (dict "name" .Values.extraCa.configMap "items" (list $file)) }}
  {{- else }}
  secret: {{ toJson (dict "secretName" .Values.extraCa.secret "items" (list $file)) }}
  {{- end }}
{{- end }}

{{- define "millrace.extraCaMount" -}}
- { name: extra-ca, mountPath: {{ include "millrace.extraCa" . }}, readOnly: true }
{{- end }}

{{- define "millrace.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "millrace.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
