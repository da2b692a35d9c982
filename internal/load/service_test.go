//nolint:bodyclose // the bodies of these replies are in memory
package load

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// asks is the body of a request for some items.
func asks(operation string, items ...string) []byte {
	if !strings.HasPrefix(operation, "Transact") {
		return fmt.Appendf(nil, `{"Key":{"id":{"S":%q}},"ExpressionAttributeValues":{":v":{"N":"1"}}}`, items[0])
	}
	var parts []string
	for n, item := range items {
		if n%2 == 0 {
			parts = append(parts, fmt.Sprintf(`{"Update":{"Key":{"id":{"S":%q}}}}`, item))
		} else {
			parts = append(parts, fmt.Sprintf(`{"Put":{"Item":{"id":{"S":%q},"n":{"N":"1"}}}}`, item))
		}
	}
	return []byte(`{"TransactItems":[` + strings.Join(parts, ",") + `]}`)
}

// said is what a refusal says: its type, and the codes of a transaction.
func said(t *testing.T, resp *http.Response) (code string, reasons []string) {
	t.Helper()
	if resp == nil {
		return "", nil
	}
	body, _ := io.ReadAll(resp.Body)
	var answer struct {
		Type    string                  `json:"__type"`
		Reasons []struct{ Code string } `json:"CancellationReasons"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%d %s: %v", resp.StatusCode, body, err)
	}
	for _, r := range answer.Reasons {
		reasons = append(reasons, r.Code)
	}
	_, code, _ = strings.Cut(answer.Type, "#")
	return code, reasons
}

func TestItemsOfATransactionRefuseOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(false)
		began := time.Now()
		flying, refused := s.enter(transactWrite, asks(transactWrite, "x"), 0)
		if flying == nil || refused != nil {
			t.Fatal("the first transaction was refused")
		}
		flying.leave(2)
		go func() {
			v, _ := s.enter(transactWrite, asks(transactWrite, "a", "b"), 4*time.Millisecond)
			v.leave(4)
		}()
		synctest.Wait()
		for _, c := range []struct {
			operation, code string
			items, reasons  []string
		}{
			{"UpdateItem", "TransactionConflictException", []string{"a"}, nil},
			{"GetItem", "", []string{"a"}, nil},
			{"UpdateItem", "", []string{"c"}, nil},
			{transactWrite, "TransactionCanceledException", []string{"c", "b"}, []string{"None", "TransactionConflict"}},
			{"TransactGetItems", "TransactionCanceledException", []string{"a", "c"}, []string{"TransactionConflict", "None"}},
			{transactWrite, "", []string{"c", "x"}, nil},
		} {
			v, resp := s.enter(c.operation, asks(c.operation, c.items...), 0)
			if code, reasons := said(t, resp); code != c.code || !slices.Equal(reasons, c.reasons) {
				t.Errorf("%s of %v during a transaction of a and b: %q, %v", c.operation, c.items, code, reasons)
			}
			v.leave(1)
		}
		if time.Since(began) != 0 {
			t.Error("a refusal takes time")
		}
		time.Sleep(5 * time.Millisecond)
		if v, resp := s.enter("UpdateItem", asks("UpdateItem", "a"), 0); v == nil {
			t.Errorf("after the transaction: %v", resp)
		}
	})
}

func TestAReadOfSeveralItemsIsOfOneMoment(t *testing.T) {
	for write, want := range map[string]string{"a": "TransactionCanceledException", "c": ""} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(false)
			done := make(chan *http.Response)
			go func() {
				_, resp := s.enter("TransactGetItems", asks("TransactGetItems", "a", "b"), 4*time.Millisecond)
				done <- resp
			}()
			synctest.Wait()
			v, _ := s.enter("UpdateItem", asks("UpdateItem", write), 0)
			v.leave(1)
			if code, _ := said(t, <-done); code != want {
				t.Errorf("%s was written during the read: %q", write, code)
			}
		})
	}
}

func TestAPartitionTakesItsLimit(t *testing.T) {
	for _, c := range []struct {
		operation, code string
		each            float64
		perSecond       int
	}{
		{"UpdateItem", "ProvisionedThroughputExceededException", 1, 1000},
		{"UpdateItem", "ProvisionedThroughputExceededException", 10, 100},
		{"GetItem", "ProvisionedThroughputExceededException", 1, 3000},
		{transactWrite, "TransactionCanceledException", 4, 500},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(true)
			taken, refusals := 0, 0
			const span = 10 * time.Second
			for began := time.Now(); time.Since(began) < span; {
				v, resp := s.enter(c.operation, asks(c.operation, "a", "b"), 0)
				if resp == nil {
					v.leave(c.each)
					taken++
					continue
				}
				if code, reasons := said(t, resp); code != c.code || code == "TransactionCanceledException" && reasons[0] != "ThrottlingError" {
					t.Fatalf("%s: %q, %v", c.operation, code, reasons)
				}
				refusals++
				time.Sleep(time.Millisecond)
			}
			// What it has saved up comes on top, a hundredth of that.
			if rate := float64(taken) / span.Seconds(); rate < 0.99*float64(c.perSecond) || rate > 1.03*float64(c.perSecond) || refusals == 0 {
				t.Errorf("%s of %v units: %v a second, %d refusals", c.operation, c.each, rate, refusals)
			}
			if v, _ := s.enter(c.operation, asks(c.operation, "c", "d"), 0); v == nil {
				t.Error("another item is throttled too")
			}
		})
	}
}
