package semaphore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

func TestBadSettings(t *testing.T) {
	b := newBench(t)
	for name, cfg := range map[string]semaphore.Config{
		"negative limit":           {Limit: -1},
		"negative workers":         {Workers: -1},
		"lease too short":          {Lease: time.Millisecond},
		"less than three attempts": {Lease: 3 * time.Second, Table: repo.TableConfig{AttemptTimeout: 2 * time.Second}},
		"negative retry":           {Retry: semaphore.Retry{Attempts: -1}},
		"retry bounds":             {Retry: semaphore.Retry{Min: time.Hour, Max: time.Second}},
		"skew":                     {ClockSkew: -1},
		"owner":                    {Owner: strings.Repeat("x", 300)},
		"owner, not UTF-8":         {Owner: "\xff"},
		"TTL on the counter":       {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "queued"}}},
		"TTL on a permit":          {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "p_x"}}},
		"TTL on the end of a job":  {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "until"}}},
		"TTL on a key":             {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "sk"}}},
	} {
		if _, err := semaphore.New[int](b.Client, b.Table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	s := b.open(t, semaphore.Config{})
	for _, limit := range []int{0, -3} {
		rig.Is(t, s.SetLimit(t.Context(), "staging", limit), repo.ErrConfig)
	}
	for _, name := range []string{"", "\xff", strings.Repeat("x", 1025)} {
		rig.Is(t, s.Enqueue(t.Context(), name, deploy{}), repo.ErrKey)
		_, err := s.Acquire(t.Context(), name)
		rig.Is(t, err, repo.ErrKey)
		_, err = s.Next(t.Context(), name)
		rig.Is(t, err, repo.ErrKey)
		rig.Is(t, s.SetLimit(t.Context(), name, 1), repo.ErrKey)
		rig.Is(t, s.Requeue(t.Context(), name, "x"), repo.ErrKey)
	}
	longest := strings.Repeat("x", 1024)
	enqueue(t, s, longest, 1)
	rig.Is(t, rig.Must(s.Next(t.Context(), longest))(t).Done(t.Context()))
	rig.Is(t, s.Run(t.Context(), nil), repo.ErrConfig)
}

func TestProgramsThatDisagreeAboutTheLimit(t *testing.T) {
	b := newBench(t)
	two, three, any := b.open(t, semaphore.Config{Limit: 2}), b.open(t, semaphore.Config{Limit: 3}), b.open(t, semaphore.Config{})
	enqueue(t, two, "staging", 1)
	for name, call := range map[string]func() error{
		"Enqueue": func() error { return three.Enqueue(t.Context(), "staging", deploy{}) },
		"Next":    func() error { _, err := three.Next(t.Context(), "staging"); return err },
		"Acquire": func() error { _, err := three.Acquire(t.Context(), "staging"); return err },
		"Run": func() error {
			return three.Run(t.Context(), func(context.Context, *semaphore.Job[deploy]) error { return nil })
		},
	} {
		err := call()
		var e *semaphore.LimitError
		if !errors.As(err, &e) || e.Stored != 2 || e.Configured != 3 || !errors.Is(err, semaphore.ErrLimit) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	rig.Is(t, any.SetLimit(t.Context(), "staging", 5)) // an operator's word is for all
	enqueue(t, three, "staging", 1)
	wantResource(t, three, "staging", 2, 0, 0)
}

func TestTableWithoutASortKey(t *testing.T) {
	b := bench{rig.New(t)}
	table := rig.Must(repo.NewKeyTable(b.Client, b.Table, repo.KeySchema{Partition: repo.KeyAttribute{Name: "pk"}}, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	s := b.open(t, semaphore.Config{})
	rig.Is(t, s.EnsureTable(t.Context()), repo.ErrSchema)
	rig.Is(t, s.Enqueue(t.Context(), "staging", deploy{}), repo.ErrSchema)
	missing := rig.Must(semaphore.New[deploy](b.Client, b.Table+"-none", semaphore.Config{}))(t)
	rig.Is(t, missing.Enqueue(t.Context(), "staging", deploy{}), repo.ErrNoTable)
	rig.Is(t, missing.Run(t.Context(), func(context.Context, *semaphore.Job[deploy]) error { return nil }), repo.ErrNoTable)
}

func TestForeignRowsAreNotTouched(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	enqueue(t, s, "staging", 1)
	_, err := b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "JOBS#staging"}, "sk": &types.AttributeValueMemberS{Value: "0"}, "attempts": &types.AttributeValueMemberS{Value: "x"}}})
	rig.Is(t, err)
	_, err = s.Next(t.Context(), "staging")
	rig.Is(t, err, repo.ErrSchema)
	var tallies []semaphore.Tally
	for tally, err := range s.Audit(t.Context()) {
		rig.Is(t, err)
		tallies = append(tallies, tally)
	}
	if len(tallies) != 1 || tallies[0].OK() {
		t.Errorf("the audit found %v", tallies) // it must find what is wrong
	}
	var ids []string
	for info, err := range s.Jobs(t.Context(), "staging") {
		ids = append(ids, info.ID)
		rig.Is(t, err, repo.ErrSchema)
	}
	if !slices.Equal(ids, []string{""}) {
		t.Errorf("jobs %q", ids)
	}
}

func TestJobsThatJSONHasNothingFor(t *testing.T) {
	b := newBench(t)
	_, err := semaphore.New[struct{ C chan int }](b.Client, b.Table, semaphore.Config{})
	rig.Is(t, err, repo.ErrSchema)
}
