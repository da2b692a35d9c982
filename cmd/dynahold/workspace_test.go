package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// The workspace is there so that this tool can be run from the root of a clone.
// It must not give the library other dependencies than its users get.
func TestTheWorkspaceChangesNothingForTheLibrary(t *testing.T) {
	const packages, modules = "{{.ImportPath}}", "{{with .Module}}{{.Path}} {{.Version}}{{end}}"
	for name, args := range map[string][]string{
		"packages":     {"list", "-f", packages, "./..."},
		"dependencies": {"list", "-deps", "-test", "-f", modules, "./..."},
	} {
		within := goCommand(t, "GOWORK=", args...)
		alone := goCommand(t, "GOWORK=off", args...)
		if within != alone {
			t.Errorf("%s in the workspace:\n%s\nwithout it:\n%s", name, within, alone)
		}
		if strings.Contains(within, "kong") || strings.Contains(within, "/cmd/") {
			t.Errorf("%s: the library depends on its tool:\n%s", name, within)
		}
	}
}

// A module below the root that is not in the workspace could not be built from
// within its folder.
func TestAllModulesAreInTheWorkspace(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if err != nil || d.Name() != "go.mod" {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if want := "./" + filepath.ToSlash(dir); want != "./." && !strings.Contains(string(text), "\t"+want+"\n") {
			t.Errorf("%s is not in go.work", want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func goCommand(t *testing.T, env string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...) // arguments from above
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
