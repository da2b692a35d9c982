package fault_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
)

func TestEveryKindDoesWhatItSays(t *testing.T) {
	whole := func(t *testing.T, o outcome) {
		t.Helper()
		if o.err != nil || o.bodyErr != nil || o.resp.StatusCode != 200 || o.body != reply {
			t.Errorf("answer %+v", o)
		}
	}
	broken := func(op string, errno syscall.Errno) func(*testing.T, outcome) {
		return func(t *testing.T, o outcome) {
			t.Helper()
			var netErr *net.OpError
			if !errors.As(o.err, &netErr) || netErr.Op != op || !errors.Is(o.err, errno) {
				t.Errorf("error %v", o.err)
			}
		}
	}
	failed := func(status int, code string) func(*testing.T, outcome) {
		return func(t *testing.T, o outcome) {
			t.Helper()
			want := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"injected"}`
			if o.err != nil || o.resp.StatusCode != status || o.body != want {
				t.Errorf("answer %+v", o)
			}
		}
	}
	blank := func(body string) func(*testing.T, outcome) {
		return func(t *testing.T, o outcome) {
			t.Helper()
			if o.err != nil || o.bodyErr != nil || o.resp.StatusCode != 200 || o.body != body || o.resp.Header.Get("X-Amz-Crc32") != "" {
				t.Errorf("answer %+v", o)
			}
		}
	}
	cases := map[fault.Kind]struct {
		delivered int // when the caller has the outcome
		later     int // after Wait
		check     func(*testing.T, outcome)
	}{
		fault.None:         {1, 1, whole},
		fault.DropRequest:  {0, 0, broken("read", syscall.ECONNRESET)},
		fault.LoseResponse: {1, 1, broken("read", syscall.ECONNRESET)},
		fault.CutResponse: {1, 1, func(t *testing.T, o outcome) {
			if o.err != nil || o.resp.StatusCode != 200 || o.body != reply[:len(reply)/2] || !errors.Is(o.bodyErr, io.ErrUnexpectedEOF) {
				t.Errorf("answer %+v", o)
			}
		}},
		fault.Resend: {2, 2, func(t *testing.T, o outcome) {
			whole(t, o)
			if got := o.resp.Header.Get("X-Delivery"); got != "2" {
				t.Errorf("the answer is that of delivery %s", got)
			}
		}},
		fault.LateDuplicate: {1, 2, whole},
		fault.Delay:         {1, 1, whole},
		fault.DelayResponse: {1, 1, whole},
		fault.Truncate: {1, 1, func(t *testing.T, o outcome) {
			half := reply[:len(reply)/2]
			if o.err != nil || o.bodyErr != nil || o.resp.StatusCode != 200 || o.body != half ||
				o.resp.ContentLength != int64(len(half)) || o.resp.Header.Get("Content-Length") != fmt.Sprint(len(half)) || o.resp.Header.Get("X-Amz-Crc32") == "" {
				t.Errorf("answer %+v", o)
			}
		}},
		fault.Error500:            {0, 0, failed(500, "InternalServerError")},
		fault.Error500After:       {1, 1, failed(500, "InternalServerError")},
		fault.Throttle:            {0, 0, failed(400, "ProvisionedThroughputExceededException")},
		fault.TransactionConflict: {0, 0, failed(400, "TransactionConflictException")},
		fault.Empty:               {0, 0, blank("")},
		fault.EmptyAfter:          {1, 1, blank("")},
		fault.Blank:               {0, 0, blank("{}")},
		fault.NoImage:             {1, 1, whole}, // no condition failed
		fault.Refuse:              {0, 0, broken("dial", syscall.ECONNREFUSED)},
	}
	for _, k := range append(fault.AllKinds(), fault.None, fault.Blank, fault.NoImage) {
		t.Run(k.String(), func(t *testing.T) {
			c, ok := cases[k]
			if !ok {
				t.Fatal("kind without a case")
			}
			s := newServer(t)
			in := s.always(k)
			o := s.call(t, in, "UpdateItem", "body")
			// The late copy may be there already: its delay can be next to nothing.
			if n := s.delivered(); n != c.delivered && n != c.later {
				t.Errorf("delivered %d times, want %d", n, c.delivered)
			}
			in.Wait()
			if n := s.delivered(); n != c.later {
				t.Errorf("delivered %d times in the end, want %d", n, c.later)
			}
			for _, body := range s.bodies {
				if body != "body" {
					t.Errorf("delivered %q", body)
				}
			}
			c.check(t, o)
			faulted := 1
			if k == fault.None {
				faulted = 0
			}
			if in.Counts()[k] != 1 || in.Requests() != 1 || in.Faulted() != faulted {
				t.Errorf("counts %v, %d requests, %d faulted", in.Counts(), in.Requests(), in.Faulted())
			}
		})
	}
}

// A transaction that meets another one is cancelled, with a reason for each item.
func TestAConflictOfATransaction(t *testing.T) {
	for _, op := range []string{"TransactWriteItems", "TransactGetItems"} {
		s := newServer(t)
		o := s.call(t, s.always(fault.TransactionConflict), op, `{"TransactItems":[{},{},{}]}`)
		want := `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"injected","CancellationReasons":[` +
			`{"Code":"TransactionConflict","Message":"injected"},{"Code":"None"},{"Code":"None"}]}`
		if o.err != nil || o.resp.StatusCode != 400 || o.body != want || s.delivered() != 0 {
			t.Errorf("%s: delivered %d times, %+v", op, s.delivered(), o)
		}
	}
}

func TestNamesOfKinds(t *testing.T) {
	names := map[string]fault.Kind{}
	for k := fault.None; k <= fault.NoImage; k++ {
		if other, taken := names[k.String()]; taken || k.String() == "" {
			t.Errorf("kinds %d and %d are both %q", k, other, k)
		}
		names[k.String()] = k
	}
	for _, k := range []fault.Kind{-1, fault.NoImage + 1} {
		if !strings.HasPrefix(k.String(), "Kind(") {
			t.Errorf("%d has a name: %v", int(k), k)
		}
	}
	if all := fault.AllKinds(); slices.Contains(all, fault.None) || slices.Contains(all, fault.HoldRequest) || slices.Contains(all, fault.HoldResponse) {
		t.Errorf("a schedule would pick from %v", all)
	}
}
