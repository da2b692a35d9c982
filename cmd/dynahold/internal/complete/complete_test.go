package complete

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

type grammar struct {
	Locks struct {
		List struct {
			Table  string `arg:""`
			Output string `short:"o" enum:"table,json" default:"table" help:"What to print: table or json. More."`
			Quiet  bool   `short:"q"`
		} `cmd:"" help:"List the locks. Reads all."`
		Timeline struct {
			Files []string `arg:"" complete:"file"`
			HTML  *string  `name:"html" complete:"file"`
		} `cmd:"" help:"When."`
		Secret struct{} `cmd:"" hidden:""`
	} `cmd:"" help:"Locks."`
	Completion struct {
		Shell string `arg:"" enum:"bash,zsh"`
	} `cmd:"" help:"Script."`
}

func TestWords(t *testing.T) {
	parser, err := kong.New(&grammar{})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"":                              "locks completion",
		"lo":                            "locks",
		"x":                             "",
		"locks ":                        "list timeline",
		"locks li":                      "list",
		"locks list ":                   "",
		"locks list --":                 "--help --output --quiet",
		"locks list -":                  "--help --output --quiet",
		"locks list t --o":              "--output",
		"locks list --output ":          "table json",
		"locks list -o j":               "json",
		"locks list --output=":          "--output=table --output=json",
		"locks list --output=j":         "--output=json",
		"locks list --output =":         "table json", // as bash parts it
		"locks list --output = j":       "json",
		"locks list -q -":               "--help --output --quiet",
		"locks list --output=json -":    "--help --output --quiet",
		"locks list --nothing=":         "",
		"locks timeline ":               Files,
		"locks timeline a b":            Files,
		"locks timeline --html ":        Files,
		"locks timeline --html=a":       Files,
		"locks timeline --html a.html ": Files,
		"locks timeline -- -":           Files,
		"completion ":                   "bash zsh",
		"completion z":                  "zsh",
		"completion zsh ":               "",
		"--":                            "--help",
	} {
		var words []string
		for _, answer := range Words(parser.Model.Node, strings.Split(line, " ")) {
			word, _, _ := strings.Cut(answer, "\t")
			words = append(words, word)
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := Words(parser.Model.Node, nil); !slices.Contains(got, "locks\tLocks") {
		t.Errorf("no words: %q", got)
	}
	if got := Words(parser.Model.Node, []string{"locks", "li"}); !slices.Equal(got, []string{"list\tList the locks"}) {
		t.Errorf("what it means: %q", got)
	}
}
