package main

import (
	"embed"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/complete"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help says how a shell learns of it.
func (completionCommand) Help() string {
	return `Prints a script that completes commands, flags, their values and files. It asks the tool itself, so it needs no change with a new version; names of tables and locks are not completed, since that would send requests.

  bash   source <(dynahold completion bash)                  in ~/.bashrc
  zsh    source <(dynahold completion zsh)                   in ~/.zshrc, after compinit
  fish   dynahold completion fish | source                   in ~/.config/fish/config.fish`
}

//go:embed shells/dynahold.*
var shells embed.FS

// Run implements the command.
func (cmd *completionCommand) Run(c *console) error {
	script, err := shells.ReadFile("shells/dynahold." + cmd.Shell)
	if err != nil {
		return err
	}
	_, err = c.out.Write(script)
	return err
}

// completeWord is what the scripts call, followed by the words of the command line as far
// as it is typed, the last one unfinished or empty.
const completeWord = "__complete"

// complete prints what a word can become: a line each, with what it means after a tab.
func (c *console) complete(model *kong.Application, words []string) int {
	for _, w := range complete.Words(model.Node, words) {
		if _, err := fmt.Fprintln(c.out, w); err != nil {
			return exitFailed
		}
	}
	return exitOK
}
