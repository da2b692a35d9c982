package repotest

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A client that was made with a number of attempts wraps its policy once more whenever it is
// copied: the attempts of a client that breaks would be those of the one that it was made of.
func TestAttemptsOfABrokenClient(t *testing.T) {
	client := dynamodb.New(dynamodb.Options{RetryMaxAttempts: 10})
	if n := newFaults(t, client, attempts).Client().Options().Retryer.MaxAttempts(); n != attempts {
		t.Errorf("the suite's client makes %d attempts, want %d", n, attempts)
	}
	if n := NewFaults(t, client).Client().Options().Retryer.MaxAttempts(); n != 10 {
		t.Errorf("the client makes %d attempts, want those of its origin", n)
	}
}

// Each operation on items can be broken, PartiQL's too.
func TestOperationsThatCanBreak(t *testing.T) {
	f := NewFaults(t, dynamodb.New(dynamodb.Options{}))
	for _, op := range []string{"BatchExecuteStatement", "ExecuteStatement", "ExecuteTransaction", "Scan"} {
		if n := f.Requests(op); n != 0 {
			t.Errorf("%d requests of %s", n, op)
		}
	}
}
