{{/*
A Deployment with its ServiceAccount and PodDisruptionBudget. Takes
  root          the chart's scope
  component     what it is called, in names and labels
  image         the image's last part
  values        { replicas, resources, nodeSelector, tolerations }; without the last two, those of every pod
  env           its environment variables, as text
  ports         of the container by name, without the operations port
  grace         seconds that a graceful stop may take
  scaled        true when something else decides on the number of replicas
  maxUnavailable  of the PodDisruptionBudget
  volumes       volumes by name: { mountPath, emptyDir }
  surge         how many more pods may run during an update, and how many fewer
  fewer
  drainSeconds  how long traffic finds other pods before this one stops listening
  token         true when it talks to the Kubernetes API
*/}}
{{- define "millrace.workload" -}}
{{- $root := .root }}
{{- $component := .component }}
{{- $scope := dict "root" $root "component" $component }}
{{- $grace := .grace }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "millrace.metadata" $scope | nindent 2 }}
spec:
  {{- if not .scaled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  selector:
    matchLabels:
      {{- include "millrace.selector" $scope | nindent 6 }}
  strategy:
    rollingUpdate:
      maxSurge: {{ .surge | default "25%" }}
      maxUnavailable: {{ .fewer | default 0 }}
  template:
    metadata:
      labels:
        {{- include "millrace.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $component }}
        {{- with $root.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $root.Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "millrace.fullname" $root }}-{{ $component }}
      automountServiceAccountToken: {{ .token | default false }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ add $grace (.drainSeconds | default 0) }}
      {{- include "millrace.placement" (merge (dict "own" .values) $scope) | nindent 6 }}
      securityContext:
        {{- include "millrace.podSecurity" $root | nindent 8 }}
      containers:
        - name: {{ .image }}
          image: {{ include "millrace.image" (dict "root" $root "image" .image) | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          securityContext:
            {{- include "millrace.containerSecurity" $root | nindent 12 }}
          env:
            {{- include "millrace.env.process" (dict "root" $root "service" (splitList "-" $component | first) "graceSeconds" $grace) | nindent 12 }}
            {{- include "millrace.env.extraCa" $root | nindent 12 }}
            {{- .env | nindent 12 }}
          ports:
            {{- range $name, $port := .ports }}
            - { name: {{ $name }}, containerPort: {{ $port }} }
            {{- end }}
            - { name: ops, containerPort: 9090 }
          {{- /* Not readiness: one that starts while something is away works as far as it can, and is not started anew. */}}
          startupProbe:
            httpGet: { path: /health, port: ops }
            periodSeconds: 2
            failureThreshold: 90
          readinessProbe:
            httpGet: { path: /ready, port: ops }
            periodSeconds: 5
            timeoutSeconds: 3
            failureThreshold: 2
          {{- /* A restart is the last resort: while the record is away for minutes, it would only make it worse. */}}
          livenessProbe:
            httpGet: { path: /health, port: ops }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 30
          {{- with .drainSeconds }}
          lifecycle:
            preStop:
              sleep: { seconds: {{ . }} }
          {{- end }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          {{- $ca := include "millrace.extraCa" $root }}
          {{- if or .volumes $ca }}
          volumeMounts:
            {{- range $name, $volume := .volumes }}
            - { name: {{ $name }}, mountPath: {{ $volume.mountPath }} }
            {{- end }}
            {{- if $ca }}
            {{- include "millrace.extraCaMount" $root | nindent 12 }}
            {{- end }}
      volumes:
        {{- range $name, $volume := .volumes }}
        - name: {{ $name }}
          emptyDir: {{ toJson $volume.emptyDir }}
        {{- end }}
        {{- if $ca }}
        {{- include "millrace.extraCaVolume" $root | nindent 8 }}
        {{- end }}
      {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "millrace.metadata" $scope | nindent 2 }}
spec:
  maxUnavailable: {{ .maxUnavailable | default $root.Values.podDisruptionBudget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "millrace.selector" $scope | nindent 6 }}
---
{{ include "millrace.serviceAccount" $scope }}
{{- end }}

{{/* Takes { root, component, annotations }. */}}
{{- define "millrace.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "millrace.metadata" . | nindent 2 }}
  {{- with merge (dict) (.annotations | default dict) (index .root.Values.serviceAccounts.annotations .component | default dict) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}

{{/* Where pods run. Takes { root, component, own }. */}}
{{- define "millrace.placement" -}}
{{- $values := .root.Values -}}
topologySpreadConstraints:
  {{- range $key, $when := dict "topology.kubernetes.io/zone" $values.topologySpread.zone "kubernetes.io/hostname" $values.topologySpread.node }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $when }}
    labelSelector:
      matchLabels:
        {{- include "millrace.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- include "millrace.scheduling" . }}
{{- end }}

{{/* Takes { root, own }: what a component has of its own wins. */}}
{{- define "millrace.scheduling" }}
{{- $values := .root.Values }}
{{- $own := .own | default dict }}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with default $values.nodeSelector $own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $values.tolerations $own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A Service in front of a component's port. Takes { root, component, port, service }. */}}
{{- define "millrace.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "millrace.metadata" . | nindent 2 }}
  {{- with .service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .service.type }}
  {{- if ne .service.type "ClusterIP" }}
  {{- /* Or every client would have the address of a node, and share its rate limit. */}}
  externalTrafficPolicy: Local
  {{- end }}
  selector:
    {{- include "millrace.selector" . | nindent 4 }}
  ports:
    - { name: {{ .port }}, port: {{ .number }}, targetPort: {{ .port }} }
{{- end }}

{{/* Takes { root, component, ingress, url }. */}}
{{- define "millrace.ingress" -}}
{{- $host := (urlParse .url).hostname -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "millrace.metadata" . | nindent 2 }}
  {{- with .ingress.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with .ingress.tlsSecret }}
  tls:
    - hosts: [{{ $host | quote }}]
      secretName: {{ . }}
  {{- end }}
  rules:
    - host: {{ $host | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ include "millrace.fullname" .root }}-{{ .component }}
                port: { name: http }
{{- end }}

{{/* By CPU. Takes { root, component, replicas, autoscaling }. */}}
{{- define "millrace.cpuAutoscaler" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "millrace.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "millrace.fullname" .root }}-{{ .component }}
  minReplicas: {{ .replicas }}
  maxReplicas: {{ max .autoscaling.maxReplicas .replicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: {{ .autoscaling.targetCpuPercent }} }
  behavior:
    scaleDown:
      stabilizationWindowSeconds: 600
{{- end }}
