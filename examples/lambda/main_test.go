package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/repo"
)

// forgetful makes functions book without the ids of transfers.
const forgetful = "LAMBDA_TEST_FORGETFUL"

// TestMain makes the test binary a function when it is started as one.
func TestMain(m *testing.M) {
	switch {
	case !crew.IsMember():
		os.Exit(m.Run())
	case os.Getenv(forgetful) == "":
		serve()
	}
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		panic(err)
	}
	f, err := newFunction(dynamodb.NewFromConfig(cfg), os.Getenv("TABLE"))
	if err != nil {
		panic(err)
	}
	lambda.Start(func(ctx context.Context, batch events.SQSEvent) error {
		for _, m := range batch.Records {
			t, err := read(m)
			if err != nil {
				return err
			}
			_, err = f.accounts.Upsert(ctx, repo.Key{Partition: t.Account}, t.book)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func TestEveryTransferIsBookedOnce(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	for _, want := range []string{"every transfer booked once, 4 dead letters", "killed at work", "killed before its answer was heard",
		"has no time left", "functions were frozen"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	// What was written when the function was killed comes again, and is not booked again;
	// what was not, because others were at its account, is.
	first := regexp.MustCompile(`03-redelivered +[0-9]+ booked, +[0-9]+ repeated, +([0-9]+) to come`).FindStringSubmatch(out.String())
	again := regexp.MustCompile(`03-redelivered again +([0-9]+) booked, +[1-9][0-9]* repeated`).FindStringSubmatch(out.String())
	if first == nil || again == nil || again[1] > first[1] { // of one digit each
		t.Errorf("03-redelivered did not come again, or was booked twice\n%s", &out)
	}
}

// TestFunctionsWithoutIdsAreFound: the audit must see what the ids are for.
func TestFunctionsWithoutIdsAreFound(t *testing.T) {
	t.Setenv(forgetful, "1")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-kill=false"}, &out, &errs); code != 1 || !strings.Contains(out.String(), "WRONG account ann is") {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-functions", "0"}, {"-functions", "51"}, {"-nonsense"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}
