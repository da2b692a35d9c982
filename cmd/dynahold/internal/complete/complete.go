// Package complete tells a shell what the word under its cursor can become, from the
// grammar of the command line. The shells' scripts ask it, so that they know nothing
// themselves.
//
// Companions of kong do the same, but the one that can be had has seen no release since
// 2022 and brings a library from 2019; another parser would know less of the grammar
// than kong's own model does.
package complete

import (
	"strings"

	"github.com/alecthomas/kong"
)

// Files is the answer that asks the shell for names of files. A flag or an argument has
// files if its tag says complete:"file".
const Files = ":files"

// Words returns what the last word can become, after the words before it. Each answer is
// a word, a tab, and what it means; or Files.
func Words(root *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	l := line{node: root}
	for _, w := range words[:len(words)-1] {
		l.word(w)
	}
	return l.last(words[len(words)-1])
}

// line is a command line as far as it is read.
type line struct {
	node     *kong.Node
	value    *kong.Flag // whose value comes next
	args     int        // arguments of the node so far
	onlyArgs bool       // after "--"
}

func (l *line) word(w string) {
	switch {
	case l.value != nil && w == "=": // bash parts --flag=value there
	case l.value != nil:
		l.value = nil
	case l.onlyArgs:
		l.args++
	case w == "--":
		l.onlyArgs = true
	case strings.HasPrefix(w, "-") && w != "-":
		if f := l.flag(w); f != nil && !f.IsBool() && !f.IsCounter() && !strings.Contains(w, "=") {
			l.value = f
		}
	default:
		for _, child := range l.node.Children {
			if child.Type == kong.CommandNode && child.Name == w {
				l.node, l.args = child, 0
				return
			}
		}
		l.args++
	}
}

// flag is the one that a word names; nil if there is none, or if the word has its value
// within it.
func (l *line) flag(w string) *kong.Flag {
	name, _, _ := strings.Cut(w, "=")
	for _, group := range l.node.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func (l *line) last(w string) []string {
	if l.value != nil {
		return values(l.value.Value, "", strings.TrimPrefix(w, "="))
	}
	if name, value, is := strings.Cut(w, "="); is && strings.HasPrefix(w, "--") && !l.onlyArgs {
		if f := l.flag(w); f != nil {
			return values(f.Value, name+"=", value)
		}
		return nil
	}
	var all []string
	if strings.HasPrefix(w, "-") && !l.onlyArgs {
		for _, group := range l.node.AllFlags(true) {
			for _, f := range group {
				all = add(all, "--"+f.Name, w, f.Help)
			}
		}
		return all
	}
	for _, child := range l.node.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			all = add(all, child.Name, w, child.Help)
		}
	}
	if n := len(l.node.Positional); n > 0 {
		if arg := l.node.Positional[min(l.args, n-1)]; l.args < n || arg.IsSlice() {
			all = append(all, values(arg, "", w)...)
		}
	}
	return all
}

// values are those that a flag or an argument can have, as far as the grammar tells.
func values(v *kong.Value, before, w string) (all []string) {
	if v.Tag.Get("complete") == "file" {
		return []string{Files}
	}
	if v.Enum != "" {
		for _, value := range v.EnumSlice() {
			all = add(all, before+value, before+w, v.Help)
		}
	}
	return all
}

// add adds a word that begins with what is there of it. Of the help it takes the first
// sentence.
func add(all []string, word, begun, help string) []string {
	if !strings.HasPrefix(word, begun) {
		return all
	}
	help = strings.NewReplacer("\t", " ", "\n", " ").Replace(help)
	if i := strings.Index(help, ". "); i > 0 {
		help = help[:i]
	}
	return append(all, word+"\t"+strings.TrimSuffix(help, "."))
}
