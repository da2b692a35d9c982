package ddb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// A wrapped client lets the SDK repeat out of sight. Whatever the last of its
// requests was told, the one before may have been applied: nothing is called
// refused.
func TestRepeatsOutOfSight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for way := range rig.Wrappings(b.client) {
		for _, last := range []fault.Kind{fault.Throttle, fault.TransactionConflict, fault.Refuse, fault.HoldRequest, fault.Error500, fault.None} {
			t.Run(fmt.Sprintf("%s, %v", way, last), func(t *testing.T) {
				t.Parallel()
				sender, in := b.sender(t, func(n int) fault.Kind {
					if n == 0 {
						return fault.LoseResponse
					}
					return last
				})
				client, _ := sender.Client.(*dynamodb.Client)
				s := &ddb.Table{Client: rig.Wrappings(client)[way], Name: b.table, Timeout: 10 * time.Second, Classify: asIs}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					select {
					case <-in.Held(): // the context ends before the repetition is sent
						cancel()
					case <-ctx.Done():
					}
				}()
				id := fmt.Sprintf("%s %v", way, last)
				res := s.Update(ctx, b.add(id), ddb.Options{NoGrace: true})
				in.Wait()
				most := 3 * 3 // three attempts, each of which the SDK makes three times
				if way == "a retryer of its own" {
					most = 4 + ddb.MostOngoing // nothing is out of sight
				}
				if n := in.Requests(); n > most {
					t.Errorf("%d requests, at most %d", n, most)
				}
				if b.applied(t, id) != "1" {
					t.Fatal("the first request was not applied: the test shows nothing")
				}
				if res.Clean || res.Outcome != ddb.Unknown && res.Outcome != ddb.Condition {
					t.Errorf("outcome %v, clean %v: %v", res.Outcome, res.Clean, res.Err)
				}
			})
		}
	}
	t.Run("a context that is cancelled before anything is sent", func(t *testing.T) {
		// Where the options took effect, that nothing was sent is certain. Where
		// another transport stands in their place, it is not.
		for way, client := range rig.Wrappings(b.client) {
			s := &ddb.Table{Client: client, Name: b.table, Timeout: 10 * time.Second, Classify: asIs}
			wrong := b.add("")
			wrong.Key = nil // refused by the SDK itself
			res := s.Update(t.Context(), wrong, ddb.Options{})
			if want := way == "a retryer of its own"; res.Clean != want || (res.Outcome == ddb.Refused) != want {
				t.Errorf("%s: outcome %v, clean %v: %v", way, res.Outcome, res.Clean, res.Err)
			}
		}
	})
}

// leaving is a wrapper that gives a call up when its context ends, while the SDK
// goes on behind it.
type leaving struct {
	*dynamodb.Client
	left chan struct{} // closed when the call behind has ended
}

func (l *leaving) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	type answer struct {
		out *dynamodb.UpdateItemOutput
		err error
	}
	done := make(chan answer, 1)
	go func() {
		defer close(l.left)
		out, err := l.Client.UpdateItem(context.WithoutCancel(ctx), in, o...)
		done <- answer{out, err}
	}()
	select {
	case a := <-done:
		return a.out, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// What was called "nothing was sent" is not sent later.
func TestAGivenUpAttemptSendsNothingLater(t *testing.T) {
	b := newBench(t)
	asked, goOn := make(chan struct{}), make(chan struct{})
	sender, in := b.sender(t, always(fault.None), func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			close(asked)
			<-goOn
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		})
	})
	client, _ := sender.Client.(*dynamodb.Client)
	l := &leaving{client, make(chan struct{})}
	sender.Client = l
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	res := sender.Update(ctx, b.add("late"), ddb.Options{})
	close(goOn)
	<-l.left
	if res.Outcome != ddb.Refused || !res.Clean || !errors.Is(res.Err, context.Canceled) {
		t.Errorf("outcome %v, clean %v: %v", res.Outcome, res.Clean, res.Err)
	}
	if n := in.Requests(); n != 0 || b.applied(t, "late") != "" {
		t.Errorf("%d requests were sent after the call had ended", n)
	}
}
