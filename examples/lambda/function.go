package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// An account is what many messages change.
type account struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Cents   int64  `dynamodbav:"cents"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// A transfer is the body of a message. Its sender gives it its id. The id of the
// message would do as long as the sender never sends twice, and nobody redrives dead
// letters: both make a new message of the same transfer.
type transfer struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	Cents   int64  `json:"cents"` // below zero: is taken from the account
}

// function is what lives as long as its process: frozen between two calls, thawed
// after minutes or never. So nothing runs and nothing is held between them: the
// strategy takes no locks, and a function that ends anywhere keeps nobody waiting.
type function struct {
	accounts *optimistic.Repository[account]
}

// remember is for how long accounts remember the transfers that were booked. A
// transfer comes again for as long as the queue and the dead letters keep it.
const remember = 24 * time.Hour

// reserve is what is left of a call's time when its work must end: enough to learn
// what became of the last write, for which the library takes up to 3 s, and to answer.
// A call that takes longer is ended by Lambda, and its whole batch comes again.
const reserve = 4 * time.Second

// serve is the program in Lambda. The template makes the table, so that the function
// needs no right to.
func serve() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	f, err := newFunction(dynamodb.NewFromConfig(cfg), os.Getenv("TABLE"))
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(f.handle)
}

func newFunction(client repo.Client, table string) (*function, error) {
	t, err := repo.NewTable[account](client, table, repo.TableConfig{Remember: remember})
	if err != nil {
		return nil, err
	}
	// Combine: the transfers of a batch to one account are one write.
	accounts, err := optimistic.New(t, optimistic.Config{Combine: true})
	return &function{accounts}, err
}

// handle books the transfers of a batch side by side, and names the messages that are
// to come again. Nothing goes on when it returns.
func (f *function) handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-reserve))
		defer cancel()
	}
	results := make([]result, len(batch.Records))
	var wg sync.WaitGroup
	for i, m := range batch.Records {
		wg.Go(func() { results[i] = f.book(ctx, m) })
	}
	wg.Wait()

	logger := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	if call, ok := lambdacontext.FromContext(ctx); ok {
		logger = logger.With("request", call.AwsRequestID)
	}
	var response events.SQSEventResponse
	repeated := 0
	for i, r := range results {
		switch m := batch.Records[i]; {
		case r.err != nil:
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			logger.Warn("not booked", "message", m.MessageId, "error", r.err.Error())
		case r.repeated:
			repeated++
		}
	}
	failed := len(response.BatchItemFailures)
	logger.Info("batch", "booked", len(results)-repeated-failed, "repeated", repeated, "failed", failed)
	return response, nil
}

// result is what came of a message.
type result struct {
	repeated bool // it was booked when it came before
	err      error
}

var (
	errNotATransfer = errors.New("the message is not a transfer")
	errFunds        = errors.New("the account has too little")
)

// book books one transfer. With an error the message comes again, until the queue
// gives it up to the dead letters. That is right for every error: a message that
// cannot be read is to be looked at, as is another amount under the id of a transfer
// (repo.ErrMismatch), which is not taken for that one; a withdrawal may have overtaken its deposit; and
// what ended in a conflict, a time-out or repo.ErrOutcomeUnknown is booked when it
// comes again, but only if it is not yet.
func (f *function) book(ctx context.Context, m events.SQSMessage) result {
	t, err := read(m)
	if err != nil {
		return result{err: err}
	}
	once := f.accounts.Once(t.ID).WithFingerprint(strconv.AppendInt(nil, t.Cents, 10))
	_, err = once.Upsert(ctx, repo.Key{Partition: t.Account}, t.book)
	return result{repeated: once.Repeated(), err: err}
}

// book is the change that a transfer makes.
func (t transfer) book(_ context.Context, a *account) error {
	if a.Cents+t.Cents < 0 {
		return fmt.Errorf("%w: %d of %d cents", errFunds, a.Cents, -t.Cents)
	}
	a.Cents += t.Cents
	return nil
}

func read(m events.SQSMessage) (t transfer, err error) {
	if err := json.Unmarshal([]byte(m.Body), &t); err != nil {
		return t, fmt.Errorf("%w: %w", errNotATransfer, err)
	}
	if t.ID == "" || t.Account == "" || t.Cents == 0 {
		return t, fmt.Errorf("%w: id %q, account %q, %d cents", errNotATransfer, t.ID, t.Account, t.Cents)
	}
	return t, nil
}
