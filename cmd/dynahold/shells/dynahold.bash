# Completion of dynahold for bash: source <(dynahold completion bash)
_dynahold() {
	local line current=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	while IFS= read -r line; do
		if [[ $line == :files ]]; then
			compopt -o filenames
			[[ $current != = ]] || current=
			while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
		else
			COMPREPLY+=("${line%%$'\t'*}")
		fi
	done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _dynahold dynahold
