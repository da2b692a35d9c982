#compdef dynahold
# Completion of dynahold for zsh: source <(dynahold completion zsh)
_dynahold() {
	local line files=
	local -a candidates
	while IFS= read -r line; do
		if [[ $line == :files ]]; then
			files=1
		else
			candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
		fi
	done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
	(( $#candidates )) && _describe dynahold candidates
	if [[ -n $files ]]; then
		[[ $PREFIX != --*=* ]] || compset -P '*='
		_files
	fi
}
# As a file of $fpath it is the function itself; sourced it makes it known.
if [[ ${funcstack[1]} == _dynahold ]]; then
	_dynahold "$@"
else
	compdef _dynahold dynahold
fi
