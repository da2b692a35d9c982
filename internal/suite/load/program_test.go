package load_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
)

// programVariable makes the test binary one of the programs below.
const programVariable = "LOAD_TEST_PROGRAM"

var programs = map[string]func(h *load.Harness) int{
	"measure": func(h *load.Harness) int {
		r, err := h.Run(context.Background(), load.Workload{Span: 100 * time.Millisecond}, adding(), load.Options{Virtual: true})
		if err != nil || r.Changes == 0 {
			fmt.Println(err)
			return 1
		}
		fmt.Println("arguments", os.Args[1:])
		return 7
	},
	"panic": func(h *load.Harness) int {
		return inBubble(h, func() { panic("out of order") })
	},
	"deadlock": func(h *load.Harness) int {
		return inBubble(h, func() { <-make(chan int) })
	},
}

func inBubble(h *load.Harness, f func()) int {
	c := written("failing", func(context.Context, *dynamodb.Client, string, map[string]types.AttributeValue, func(context.Context)) error {
		f()
		return nil
	})
	if _, err := h.Run(context.Background(), load.Workload{Span: time.Second}, c, load.Options{Virtual: true}); err != nil {
		fmt.Println(err)
	}
	return 0
}

func TestPrograms(t *testing.T) {
	for name, want := range map[string]struct {
		code int
		text string
	}{
		"measure":  {7, "arguments [-test.run=x -other]"},
		"panic":    {2, "out of order"},
		"deadlock": {2, "deadlock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=x", "-other")
			cmd.Env = append(os.Environ(), programVariable+"="+name, "AWS_ENDPOINT_URL_DYNAMODB="+engine.Endpoint())
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != want.code || !strings.Contains(string(out), want.text) {
				t.Errorf("%v, want code %d and %q in:\n%s", err, want.code, want.text, out)
			}
		})
	}
}
