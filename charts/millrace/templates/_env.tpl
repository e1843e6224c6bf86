{{/*
Environment variables, in the order in which they are read. A secret is always a reference: `millrace.secret` is the one
way by which one gets into a pod.
*/}}

{{/* A variable by value. Takes { name, value }; nothing when the value is empty. */}}
{{- define "millrace.var" -}}
{{- if ne (toString .value) "" }}
- name: {{ .name }}
  value: {{ .value | toString | quote }}
{{- end }}
{{- end }}

{{/* A variable from a Secret. Takes { root, name, secret }. */}}
{{- define "millrace.secret" }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ index .root.Values.secrets.keyNames .name | default .name }}
{{- end }}

{{/* One of Millrace's own secrets that everybody has who runs this service. Takes { root, name }. */}}
{{- define "millrace.ownSecret" }}
{{- include "millrace.secret" (dict "root" .root "name" .name "secret" .root.Values.secrets.name) }}
{{- end }}

{{/* One that is there only when `secrets.optional` names it. Takes { root, name }. */}}
{{- define "millrace.optionalSecret" }}
{{- if has .name .root.Values.secrets.optional }}
{{- include "millrace.ownSecret" . }}
{{- end }}
{{- end }}

{{/* Of every process. Takes { root, service, graceSeconds }. */}}
{{- define "millrace.env.process" -}}
{{- $values := .root.Values }}
- name: LOG_LEVEL
  value: {{ $values.logLevel }}
- name: OPS_HOST
  value: {{ $values.listenAddress | quote }}
- name: OPS_PORT
  value: '9090'
{{- /* It gives up before it would be killed, and says so. */}}
- name: SHUTDOWN_TIMEOUT_MS
  value: {{ mul 1000 (sub .graceSeconds 5) | quote }}
{{- include "millrace.var" (dict "name" "OTEL_EXPORTER_OTLP_ENDPOINT" "value" $values.tracing.endpoint) }}
{{- $extra := $values.extraEnv }}
{{- range $name, $value := merge (dict) (index $extra .service | default dict) ($extra.all | default dict) }}
{{- include "millrace.var" (dict "name" $name "value" $value) }}
{{- end }}
{{- end }}

{{- define "millrace.env.database" }}
{{- $database := .Values.database }}
{{- include "millrace.secret" (dict "root" . "name" "DATABASE_URL" "secret" $database.secret) }}
{{- if $database.direct }}
{{- include "millrace.secret" (dict "root" . "name" "DATABASE_DIRECT_URL" "secret" $database.secret) }}
{{- end }}
{{- end }}

{{- define "millrace.env.pool" }}
- name: DATABASE_CONNECTIONS
  value: {{ .Values.database.connections | quote }}
{{- end }}

{{- define "millrace.env.kafka" }}
{{- $kafka := .Values.kafka }}
- name: KAFKA_BROKERS
  value: {{ join "," $kafka.brokers | quote }}
- name: KAFKA_REPLICATION_FACTOR
  value: {{ $kafka.replicationFactor | quote }}
{{- $names := list }}
{{- if $kafka.tls.enabled }}
- name: KAFKA_TLS
  value: 'true'
{{- if $kafka.tls.ca }}{{ $names = append $names "KAFKA_TLS_CA" }}{{ end }}
{{- if $kafka.tls.clientCertificate }}{{ $names = concat $names (list "KAFKA_TLS_CERT" "KAFKA_TLS_KEY") }}{{ end }}
{{- end }}
{{- if $kafka.saslMechanism }}
- name: KAFKA_SASL_MECHANISM
  value: {{ $kafka.saslMechanism }}
{{- $names = concat $names (list "KAFKA_SASL_USERNAME" "KAFKA_SASL_PASSWORD") }}
{{- end }}
{{- range $names }}
{{- include "millrace.secret" (dict "root" $ "name" . "secret" (required "kafka.secret is needed with SASL or certificates" $kafka.secret)) }}
{{- end }}
{{- end }}

{{- define "millrace.env.objects" }}
{{- $objects := .Values.objects }}
- name: S3_BUCKET
  value: {{ $objects.bucket | quote }}
- name: S3_REGION
  value: {{ $objects.region | quote }}
{{- include "millrace.var" (dict "name" "S3_ENDPOINT" "value" $objects.endpoint) }}
{{- include "millrace.var" (dict "name" "S3_PUBLIC_ENDPOINT" "value" $objects.publicEndpoint) }}
- name: S3_PATH_STYLE
  value: {{ $objects.pathStyle | quote }}
{{- if $objects.secret }}
{{- range list "S3_ACCESS_KEY_ID" "S3_SECRET_ACCESS_KEY" }}
{{- include "millrace.secret" (dict "root" $ "name" . "secret" $objects.secret) }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Of both deployments of the API: they are one program, of which each shows one port to the cluster and keeps the other to
itself. Takes { root, publicHost, internalHost }.
*/}}
{{- define "millrace.env.api" }}
{{- $values := .root.Values }}
{{- $api := $values.api }}
- name: NODE_ENV
  value: production
- name: API_HOST
  value: {{ .publicHost | quote }}
- name: API_PORT
  value: '8080'
- name: API_INTERNAL_HOST
  value: {{ .internalHost | quote }}
- name: API_INTERNAL_PORT
  value: '8081'
- name: TRUSTED_PROXIES
  value: {{ $values.trustedProxies | quote }}
- name: API_RATE_PER_MINUTE
  value: {{ $api.ratePerMinute | quote }}
- name: AUTH_RATE_PER_MINUTE
  value: {{ $api.authRatePerMinute | quote }}
- name: API_URL
  value: {{ $values.urls.api | quote }}
- name: CDN_URL
  value: {{ $values.urls.cdn | quote }}
- name: DOCS_URL
  value: {{ default $values.urls.api $values.urls.docs | quote }}
{{- include "millrace.var" (dict "name" "DASHBOARD_HOSTS" "value" (join "," $api.dashboard.hosts)) }}
{{- include "millrace.var" (dict "name" "DASHBOARD_URL" "value" $api.dashboard.url) }}
{{- include "millrace.var" (dict "name" "DNS_SERVERS" "value" (join "," $values.dnsServers)) }}
{{- include "millrace.var" (dict "name" "DEMO_VIDEO_ID" "value" $api.demo.videoId) }}
{{- include "millrace.var" (dict "name" "DEMO_DOMAIN" "value" $api.demo.domain) }}
{{- if $api.google.clientId }}
- name: SSO_GOOGLE_CLIENT_ID
  value: {{ $api.google.clientId | quote }}
{{- include "millrace.ownSecret" (dict "root" .root "name" "SSO_GOOGLE_CLIENT_SECRET") }}
{{- end }}
{{- if $api.microsoft.clientId }}
- name: SSO_MICROSOFT_CLIENT_ID
  value: {{ $api.microsoft.clientId | quote }}
{{- include "millrace.ownSecret" (dict "root" .root "name" "SSO_MICROSOFT_CLIENT_SECRET") }}
{{- end }}
{{- if or $api.google.clientId $api.microsoft.clientId }}
{{- include "millrace.ownSecret" (dict "root" .root "name" "SIGN_IN_KEYS") }}
{{- end }}
{{- if eq $api.phone.provider "twilio" }}
- name: SMS_PROVIDER
  value: twilio
- name: TWILIO_ACCOUNT_SID
  value: {{ $api.phone.twilioAccountSid | quote }}
- name: TWILIO_FROM
  value: {{ $api.phone.twilioFrom | quote }}
{{- include "millrace.ownSecret" (dict "root" .root "name" "TWILIO_AUTH_TOKEN") }}
{{- include "millrace.ownSecret" (dict "root" .root "name" "PHONE_KEYS") }}
{{- end }}
{{- range list "CURSOR_KEYS" "PLAYBACK_KEYS" "WEBHOOK_SECRET_KEYS" "INTERNAL_SECRET" }}
{{- include "millrace.ownSecret" (dict "root" $.root "name" .) }}
{{- end }}
{{- range list "UPLOAD_TOKEN_KEYS" "BILLING_CALLBACK_SECRETS" }}
{{- include "millrace.optionalSecret" (dict "root" $.root "name" .) }}
{{- end }}
{{- end }}
