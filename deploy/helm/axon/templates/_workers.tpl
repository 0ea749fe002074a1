{{/* A worker set over workerDefaults, as JSON; call with (dict "root" $ "own" …). */}}
{{- define "axon.workerSet" -}}
{{- mergeOverwrite (deepCopy .root.Values.workerDefaults) (deepCopy (default dict .own)) | toJson -}}
{{- end -}}

{{/* The template of the pods that control launches. */}}
{{- define "axon.launchedPod" -}}
{{- $name := .Values.control.launches -}}
{{- $set := include "axon.workerSet" (dict "root" . "own" (get .Values.workers $name)) | fromJson -}}
{{- include "axon.workerPod" (dict "root" . "name" $name "set" $set "launched" true) -}}
{{- end -}}

{{/* A worker's pod: metadata and spec. */}}
{{- define "axon.workerPod" -}}
{{- $set := .set -}}
{{- $root := .root -}}
{{- $who := dict "root" $root "component" (printf "worker-%s" .name) -}}
{{- $image := deepCopy $root.Values.images.worker -}}
{{- range $key, $value := $set.image }}{{ if $value }}{{ $_ := set $image $key $value }}{{ end }}{{ end -}}
{{- /* A digest is of one image: it is not another's that the set names. */ -}}
{{- if and (or $set.image.repository $set.image.tag) (not $set.image.digest) }}{{ $_ := set $image "digest" "" }}{{ end -}}
{{- $resources := deepCopy $set.resources -}}
{{- if $set.gpus }}{{ $_ := set $resources.limits "nvidia.com/gpu" (toString $set.gpus) }}{{ end -}}
{{- if $set.efa }}{{ $_ := set $resources.limits "vpc.amazonaws.com/efa" (toString $set.efa) }}{{ end -}}
metadata:
  labels:
    {{- include "axon.labels" $who | nindent 4 }}
    axon.dev/role: worker
  {{- with $set.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "axon.name" $root }}-worker
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $set.terminationGracePeriodSeconds }}
  {{- with $set.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $set.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  securityContext: {{- toYaml $root.Values.podSecurityContext | nindent 4 }}
  {{- with $root.Values.images.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if or .launched (eq $set.kind "Deployment") }}
  topologySpreadConstraints: {{- include "axon.spread" $who | nindent 4 }}
  {{- else }}
  topologySpreadConstraints: # groups over zones by their leaders; their other pods follow them
    - maxSkew: {{ $root.Values.spread.maxSkew }}
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "axon.selector" $who | nindent 10 }}
          leaderworkerset.sigs.k8s.io/worker-index: "0"
  {{- end }}
  {{- include "axon.placement" $set | nindent 2 }}
  {{- if or $set.tolerations $set.gpus }}
  tolerations:
    {{- with $set.tolerations }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- if $set.gpus }}
    - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
    {{- end }}
  {{- end }}
  containers:
    - name: worker
      image: {{ include "axon.image" (dict "root" $root "image" $image) }}
      imagePullPolicy: {{ $image.pullPolicy }}
      command: [axon]
      args: {{ if .launched }}[worker]{{ else }}{{ concat (list "worker") (ternary (list "--deployment" $set.deployment) list (ne $set.deployment "")) (ternary (list "--version" $set.version) list (ne $set.version "")) (ternary (list "--pool" $set.pool) list (ne $set.pool "")) | toJson }}{{ end }}
      env:
        {{- $last := dict "models_dir" "/var/lib/axon/models" "worker" (dict "metrics_host" "0.0.0.0" "metrics_port" 8002) "lifecycle" (dict "drain_s" $set.drainSeconds) }}
        {{- include "axon.env" (dict "root" $root "settings" (list $set.settings $last) "hashes" false) | nindent 8 }}
        {{- if not .launched }}
        - name: AXON_WORKER_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        {{- with $set.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - {name: metrics, containerPort: 8002}
      {{- include "axon.probes" (dict "startup" "/readyz" "startupPeriod" 10 "startupFailures" $set.startupFailureThreshold "preStop" $set.preStopSeconds) | nindent 6 }}
      {{- include "axon.preStop" $set.preStopSeconds | nindent 6 }}
      resources: {{- toYaml $resources | nindent 8 }}
      securityContext: {{- include "axon.containerSecurity" $root | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/axon}
        - {name: models, mountPath: /var/lib/axon/models}
        - {name: tmp, mountPath: /tmp}
        - {name: secrets, mountPath: /etc/axon-secrets, readOnly: true}
        - {name: shm, mountPath: /dev/shm}
  volumes:
    - {name: data, emptyDir: {sizeLimit: 2Gi}}
    {{- if $set.modelClaim }}
    - {name: models, persistentVolumeClaim: {claimName: {{ $set.modelClaim }}}}
    {{- else }}
    - {name: models, emptyDir: {sizeLimit: {{ $set.modelSpace }}}}
    {{- end }}
    - {name: tmp, emptyDir: {sizeLimit: 2Gi}}
    {{- include "axon.secretVolume" $root | nindent 4 }}
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: {{ $set.sharedMemory }}}}
{{- end -}}
