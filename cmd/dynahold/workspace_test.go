package main

import (
	"bytes"
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
	for _, module := range modulesBelow(t) {
		if module != "." && !strings.Contains(string(text), "\t./"+filepath.ToSlash(module)+"\n") {
			t.Errorf("%s is not in go.work", module)
		}
	}
}

// modulesBelow are the folders, below the root and itself, that have a go.mod.
func modulesBelow(t *testing.T) (folders []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if err != nil || d.Name() != "go.mod" {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		folders = append(folders, folder)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// Commands that read the whole module graph, such as go doc, write the checksums
// that are missing into go.work.sum. All of them are committed, so that such a
// command leaves a clone as it was. After a change of dependencies:
//
//	go list -m all >/dev/null && git add go.work.sum
func TestOrdinaryCommandsLeaveTheCloneAsItIs(t *testing.T) {
	folder := t.TempDir()
	names := []string{"go.work", "go.work.sum"}
	for _, module := range modulesBelow(t) {
		names = append(names, filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum"))
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "all")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go list: %v: %s", err, out)
	}
	before, err := os.ReadFile(filepath.Join(root, "go.work.sum"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(folder, "go.work.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Errorf("go.work.sum lacks checksums, and any command adds them:\n%s", after)
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
