{{/* What a backup's pod does: one archive, proved by a restore, then copied; old ones go when the new one is good. */}}
{{- define "axon.backupScript" -}}
{{- $role := .Values.backup -}}
{{- $less := list -}}
{{- if not $role.pepper }}{{ $less = append $less "--without-secrets" }}{{ end -}}
{{- if .Values.batchFiles.podLocal }}{{ $less = append $less "--without-files" }}{{ end -}}
rm -f /backups/*.partial
file=/backups/axon-$(date -u +%Y%m%dT%H%M%SZ).backup
axon backup create "$file"{{ range $less }} {{ . }}{{ end }}
axon backup verify "$file" || { rm -f "$file"; exit 1; }
{{- with $role.url }}
axon backup upload "$file" {{ . | squote }}
{{- end }}
{{- if $role.claim }}
keep={{ int $role.keep }}
ls -1 /backups/*.backup | sort -r | tail -n +$((keep + 1)) | while read -r old; do rm "$old"; done
{{- end }}
{{- end -}}
