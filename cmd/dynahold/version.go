package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run implements the command.
func (versionCommand) Run(c *console) error {
	_, err := fmt.Fprintf(c.out, "dynahold %s, %s %s/%s\n", versionOfTool(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func versionOfTool() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info)
}

// versionOf is the tool's version, or the commit it was built from where it
// has none.
func versionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if commit == "" {
		return "(from source)"
	}
	return "(commit " + commit + changed + ")"
}
