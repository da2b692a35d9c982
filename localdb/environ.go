package localdb

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// What is started gets no credentials of this process: its environment is made of these
// variables, where they are set. The engine needs next to nothing; a launcher on the PATH
// finds its real one by them.
var engineVariables = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "TMP", "TEMP",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
}

// npmVariables lead npm to its settings and through the network.
var npmVariables = append([]string{
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "PROXY",
	"NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "NODE_USE_ENV_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"NVM_DIR", "NVM_BIN", "VOLTA_HOME", "ASDF_DIR", "ASDF_DATA_DIR", "FNM_DIR", "FNM_MULTISHELL_PATH", "MISE_DATA_DIR",
}, engineVariables...)

// environment is what of this process's variables a child gets.
func environment(names []string) (env []string) {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			env = append(env, entry)
		}
	}
	if env == nil {
		env = []string{} // nil would be all of this process's
	}
	return env
}

// npmEnvironment is what npm gets: beside its variables the user's settings of npm, and what
// files of settings name, such as a mirror's token. Settings that say where a project is are
// those of whatever npm this process was started by.
func npmEnvironment(files ...string) []string {
	names := slices.Concat(npmVariables, namedBySettings(files))
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		setting, is := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(name), "-", "_"), "npm_config_")
		if is && !slices.Contains(ofProjects, setting) {
			names = append(names, name)
		}
	}
	return environment(names)
}

// ofProjects are npm's settings that belong to a project or a command, not to a user.
var ofProjects = []string{"local_prefix", "workspace", "workspaces", "include_workspace_root", "prefix", "pack_destination", "dry_run", "json"}

// userSettings is the user's own file of npm's settings.
func userSettings() string {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.EqualFold(name, "npm_config_userconfig") && value != "" {
			return value
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".npmrc")
}

// namedBySettings are the variables that files of settings refer to, if nobody else can have
// written that.
func namedBySettings(files []string) (names []string) {
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || owned(info) != nil {
			continue
		}
		content, _ := os.ReadFile(path)
		for _, match := range variable.FindAllSubmatch(content, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names
}

var variable = regexp.MustCompile(`\$\{([^}?]+)\??\}`)
