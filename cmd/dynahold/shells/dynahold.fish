# Completion of dynahold for fish: dynahold completion fish | source
function __dynahold_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
		if test "$line" = :files
			__fish_complete_path (string replace -r '^--[^=]*=' '' -- "$current")
		else
			printf '%s\n' "$line"
		end
	end
end
complete -c dynahold -f -a '(__dynahold_complete)'
