// Command lambda is an AWS Lambda function that takes transfers from an SQS queue
// and books each of them once on its account, however often it is delivered, in
// whatever order, and wherever the function is frozen or dies.
//
//	go run ./examples/lambda
//
// What to look at, in this order: function.go, all that is deployed; template.yaml,
// with what it needs in AWS; testdata, events as Lambda gives them. The rest runs it
// without AWS: runtime.go is Lambda's runtime API on this machine, to which the
// program starts itself as several functions (examples/internal/crew); queue.go is the
// queue; local.go plays the events, freezes the functions between calls as Lambda
// does, kills two and leaves one no time; audit.go compares the accounts with the
// events. The function notices no difference: it speaks to AWS_LAMBDA_RUNTIME_API.
//
// It uses the embedded engine, or the endpoint in AWS_ENDPOINT_URL_DYNAMODB.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

func main() {
	if inLambda() {
		serve()
	}
	crew.Main(run)
}

// inLambda tells whether there is somebody to take events from.
func inLambda() bool { return os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// settings of a run without AWS.
type settings struct {
	functions int
	kill      bool
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var s settings
	p := crew.Program{
		Name:  "lambda",
		About: "Functions take the events of testdata from a queue, and the accounts are audited.",
		Flags: s.flags, Check: s.check,
	}
	return p.Run(args, errs, func() error {
		return demonstrate(ctx, s, out, errs)
	})
}

func (s *settings) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.functions, "functions", 4, "number of function processes")
	fs.BoolVar(&s.kill, "kill", true, "kill two of them")
}

func (s *settings) check() error {
	switch {
	case s.functions < 1 || s.functions > 50:
		return fmt.Errorf("-functions %d: use 1 to 50", s.functions)
	case s.functions < 3:
		s.kill = false // somebody must be left to go on
	}
	return nil
}
