{{/* What a backup's pod does: one archive, which has its name when a restore has proved it; then old ones go, and it is
copied. Files that nobody writes any more are what killed runs have left. Names are of this release, to the letter. */}}
{{- define "axon.backupScript" -}}
{{- $role := .Values.backup -}}
{{- $less := list -}}
{{- if not $role.pepper }}{{ $less = append $less "--without-secrets" }}{{ end -}}
{{- if .Values.batchFiles.podLocal }}{{ $less = append $less "--without-files" }}{{ end -}}
{{- $name := include "axon.name" . -}}
{{- $any := printf "%s-????????T??????Z.backup" $name -}}
find /backups -maxdepth 1 -name '{{ $any }}*' \( -name '*.partial' -o -name '*.unproved' \) -mmin +{{ add 1 (div (int $role.deadlineSeconds) 60) }} -exec rm -f {} +
file=/backups/{{ $name }}-$(date -u +%Y%m%dT%H%M%SZ).backup
axon backup create "$file.unproved"{{ range $less }} {{ . }}{{ end }}
axon backup verify "$file.unproved" || { rm -f "$file.unproved"; exit 1; }
mv "$file.unproved" "$file"
{{- if $role.claim }}
keep={{ int $role.keep }}
printf '%s\n' /backups/{{ $any }} | sort -r | tail -n +$((keep + 1)) | while read -r old; do rm "$old"; done
{{- end }}
{{- with $role.url }}
axon backup upload "$file" {{ . | squote }}
{{- end }}
{{- end -}}
