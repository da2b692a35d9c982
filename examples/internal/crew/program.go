package crew

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Program is an example as a command.
type Program struct {
	Name  string
	About string              // in a sentence or two, before its flags
	Flags func(*flag.FlagSet) // defines them
	Check func() error        // refuses values of flags
}

// Main runs an example until it ends or is interrupted, and ends the process with
// its code.
func Main(run func(ctx context.Context, args []string, out, errs io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run reads the flags and does what is to be done. It returns the code of the process:
// 1 if that failed, 2 for wrong usage.
func (p Program) Run(args []string, errs io.Writer, do func() error) int {
	switch err := p.parse(args, errs); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := do(); err != nil {
		fmt.Fprintf(errs, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

// parse says on errs what is wrong.
func (p Program) parse(args []string, errs io.Writer) error {
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.Usage = func() {
		fmt.Fprintf(errs, "%s\n\nFlags:\n", p.About)
		fs.PrintDefaults()
	}
	p.Flags(fs)
	err := fs.Parse(args)
	if err != nil {
		return err // it has said so
	}
	if fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	} else {
		err = p.Check()
	}
	if err != nil {
		fmt.Fprintf(errs, "%s: %v\n", p.Name, err)
	}
	return err
}

// dropping is how long Drop may take.
const dropping = 10 * time.Second

// Drop deletes the tables of a program when it ends, however it ends, and tells of
// those that may stay behind. One that was never made is none of them.
func Drop(ctx context.Context, program string, errs io.Writer, client *dynamodb.Client, tables ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropping)
	defer cancel()
	for _, name := range tables {
		_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		var none *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &none) {
			fmt.Fprintf(errs, "%s: table %s may stay behind: %v\n", program, name, err)
		}
	}
}
