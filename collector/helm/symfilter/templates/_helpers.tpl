{{- define "symfilter.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* The labels by which a workload's pods are selected. Argument: root, part. */ -}}
{{- define "symfilter.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "symfilter.labels" -}}
{{ include "symfilter.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "symfilter.image" -}}
{{- $repository := required "image.repository is empty: build the image of collector/Dockerfile, push it, and name it by --set image.repository=REPOSITORY" .Values.image.repository -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- /* The sources of debug files, for the processor. */ -}}
{{- define "symfilter.symbols" -}}
{{- $paths := list -}}
{{- range $i, $_ := .Values.symbols.images -}}
{{- $paths = append $paths (printf "/symbols/image-%d" $i) -}}
{{- end -}}
{{- if .Values.symbols.claim -}}
{{- $paths = append $paths "/symbols/claim" -}}
{{- end -}}
symbol_paths: {{ toJson $paths }}
debug_file_directories: {{ if .Values.symbols.nodePath }}[/symbols/node]{{ else }}[]{{ end }}
debuginfod_urls: {{ toJson .Values.symbols.debuginfodURLs }}
cache_directory: /var/lib/otelcol/symbols
max_memory: {{ .Values.symbols.maxMemory }}
{{- end -}}

{{- define "symfilter.symbolMounts" -}}
{{- range $i, $_ := .Values.symbols.images }}
- name: image-{{ $i }}
  mountPath: /symbols/image-{{ $i }}
  readOnly: true
{{- end }}
{{- if .Values.symbols.claim }}
- name: claim
  mountPath: /symbols/claim
  readOnly: true
{{- end }}
{{- if .Values.symbols.nodePath }}
- name: node
  mountPath: /symbols/node
  readOnly: true
{{- end }}
{{- end -}}

{{- define "symfilter.symbolVolumes" -}}
{{- range $i, $image := .Values.symbols.images }}
- name: image-{{ $i }}
  image:
    reference: {{ $image | quote }}
    pullPolicy: {{ $.Values.image.pullPolicy }}
{{- end }}
{{- with .Values.symbols.claim }}
- name: claim
  persistentVolumeClaim:
    claimName: {{ . }}
    readOnly: true
{{- end }}
{{- with .Values.symbols.nodePath }}
- name: node
  hostPath:
    path: {{ . }}
{{- end }}
{{- end -}}

{{- /* What is sent on goes to the backend, or is printed. */ -}}
{{- define "symfilter.exporter" -}}
{{- if .Values.backend.endpoint -}}otlp_grpc{{- else -}}debug{{- end -}}
{{- end -}}

{{- define "symfilter.debug" -}}
debug:
  verbosity: normal
  use_internal_logger: false
  output_paths: [stdout]
{{- end -}}

{{- /* The pipelines of the signals that are turned on. Argument: root, exporter, logs (receivers of logs). */ -}}
{{- define "symfilter.pipelines" -}}
{{- range $signal := list "logs" "traces" "profiles" }}
{{- if index $.root.Values.signals $signal }}
{{ $signal }}:
  receivers: {{ if eq $signal "logs" }}{{ toJson $.logs }}{{ else }}[otlp]{{ end }}
  processors: [memory_limiter, symfilter]
  exporters: [{{ $.exporter }}]
{{- end }}
{{- end }}
{{- end -}}

{{- /* Metrics at the pod's address, for Prometheus. */ -}}
{{- define "symfilter.telemetry" -}}
metrics:
  readers:
    - pull:
        exporter:
          prometheus:
            host: ${env:POD_IP}
            port: 8888
{{- end -}}

{{- /* The part of a container that agent and gateway share. Argument: root, part, values. */ -}}
{{- define "symfilter.container" -}}
name: collector
image: {{ include "symfilter.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args:
  - --config=/etc/otelcol/collector.yaml
{{- if .root.Values.signals.profiles }}
  - --feature-gates=+service.profilesSupport
{{- end }}
env:
  - name: POD_IP
    valueFrom:
      fieldRef:
        fieldPath: status.podIP
{{- with .values.env }}
{{ toYaml . | indent 2 }}
{{- end }}
ports:
  - name: otlp-grpc
    containerPort: 4317
  - name: otlp-http
    containerPort: 4318
  - name: health
    containerPort: 13133
  - name: metrics
    containerPort: 8888
livenessProbe:
  httpGet:
    path: /
    port: health
  periodSeconds: 30
readinessProbe:
  httpGet:
    path: /
    port: health
resources:
{{ toYaml .values.resources | indent 2 }}
{{- end -}}

{{- /* Where pods of a workload run. Argument: its values. */ -}}
{{- define "symfilter.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end -}}
