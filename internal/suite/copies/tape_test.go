package copies_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// second is what becomes of the nth write of a call.
type second struct {
	nth      int    // from 0
	between  func() // what others do between the two deliveries
	conflict bool   // the second one meets a transaction, and says so
}

// tape is the network of one process. It keeps every write that passes, so that a test
// can deliver it again, and delivers one twice if it is told to.
type tape struct {
	mu     sync.Mutex
	kept   []*fault.Copy                             // guarded by mu
	double *second                                   // guarded by mu
	denied *fault.Denials                            // guarded by mu
	met    func(*fault.Copy) (*http.Response, error) // guarded by mu: what becomes of each request
	writes int                                       // guarded by mu: since the tape began anew
}

// client is a client of a process with a tape.
func (t *tape) client() *dynamodb.Client {
	return rig.Client(func(o *dynamodb.Options) {
		c := fault.NewCopier(o.HTTPClient)
		c.On(t.pass)
		o.HTTPClient = c
	})
}

func (t *tape) pass(one *fault.Copy) (*http.Response, error) {
	t.mu.Lock()
	no, met := t.denied, t.met
	t.mu.Unlock()
	if met != nil {
		return met(one)
	}
	if no != nil {
		return no.Pass(one)
	}
	if !fault.Writes(one) {
		return nil, nil
	}
	t.mu.Lock()
	t.kept = append(t.kept, one)
	two := t.double
	if t.writes++; two == nil || t.writes != two.nth+1 {
		two = nil
	}
	t.mu.Unlock()
	if two == nil {
		return nil, nil
	}
	first, err := one.Deliver()
	if err != nil {
		return nil, err
	}
	if two.between != nil {
		two.between()
	}
	if two.conflict {
		return fault.Conflict(first.Request, one.Op, one.Body, 0), nil
	}
	return one.Deliver()
}

// begin forgets the writes so far; with double one from now on is delivered twice.
func (t *tape) begin(double *second) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept, t.double, t.denied, t.writes = nil, double, nil, 0
}

// meet lets a test decide what becomes of each request; nil ends that.
func (t *tape) meet(how func(*fault.Copy) (*http.Response, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.met = how
}

// deny begins to refuse writes.
func (t *tape) deny(how *fault.Denials) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.denied = how
}

// sent is how many writes were sent since.
func (t *tape) sent() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

// cut is the writes that were kept. Their tokens are others, if forgotten: as if the
// service did not know them any more.
func (t *tape) cut(forgotten bool) []*fault.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	copies := t.kept
	t.kept = nil
	for i, one := range copies {
		if forgotten {
			other := *one
			other.Body = otherToken(one.Body)
			copies[i] = &other
		}
	}
	return copies
}

// otherToken is a transaction under another token.
func otherToken(body []byte) []byte {
	var in map[string]json.RawMessage
	if json.Unmarshal(body, &in) != nil || in["ClientRequestToken"] == nil {
		return body
	}
	in["ClientRequestToken"], _ = json.Marshal(rand.Text())
	out, _ := json.Marshal(in)
	return out
}

// contents is all that a table has.
func contents(t testing.TB, table string) string {
	t.Helper()
	out, err := rig.Client().Scan(context.WithoutCancel(t.Context()), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]string, len(out.Items))
	for i, row := range out.Items {
		var attrs []string
		for name, v := range row {
			text, _ := json.Marshal(v)
			attrs = append(attrs, fmt.Sprintf("%s=%s", name, text))
		}
		sort.Strings(attrs)
		rows[i] = strings.Join(attrs, " ")
	}
	sort.Strings(rows)
	return strings.Join(rows, "\n")
}
