package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// service is what DynamoDB does and an embedded engine does not. A transaction takes
// two rounds inside DynamoDB, and whoever comes to one of its items in between is
// refused. And a partition takes only so much a second. nil adds nothing.
type service struct {
	limited bool

	mu         sync.Mutex
	flying     map[string]bool      // guarded by mu: items of transactions that are being written
	writes     map[string]int       // guarded by mu: begun on each item
	partitions map[string]partition // guarded by mu: of each item
}

func newService(limited bool) *service {
	return &service{limited: limited, flying: map[string]bool{}, writes: map[string]int{}, partitions: map[string]partition{}}
}

// partition is what an item may still take before it is throttled, as of a moment.
type partition struct {
	left units
	at   time.Time
}

// The limits of a partition, in units a second, and for how long it saves up what
// is not used. (DynamoDB documents no such time for the limits of a partition.)
const (
	writeLimit = 1000
	readLimit  = 3000
	saves      = 100 * time.Millisecond
)

// after is the partition at a later moment.
func (p partition) after(now time.Time) partition {
	passed := saves
	if !p.at.IsZero() {
		passed = now.Sub(p.at)
	}
	grown := func(left, limit float64) float64 {
		return min(left+passed.Seconds()*limit, saves.Seconds()*limit)
	}
	return partition{units{read: grown(p.left.read, readLimit), write: grown(p.left.write, writeLimit)}, now}
}

// visit is a request inside the service.
type visit struct {
	service   *service
	operation string
	items     []string
}

// enter lets a request in, or answers it with a refusal. It takes as long as the
// second round of a transaction.
func (s *service) enter(operation string, body []byte, second time.Duration) (*visit, *http.Response) {
	if s == nil {
		return nil, nil
	}
	v := &visit{s, operation, itemsOf(body)}
	before, code := v.begin()
	if code != nil {
		return nil, v.refusal(code)
	}
	time.Sleep(second)
	if operation == "TransactGetItems" {
		if code := v.moved(before); code != nil {
			return nil, v.refusal(code)
		}
	}
	return v, nil
}

const (
	conflict  = "TransactionConflict"
	throttled = "ThrottlingError"
)

// begin is the first round: the code of the refusal for each item, or nil, and how
// many writes of the items had begun.
func (v *visit) begin() (before int, refused []string) {
	s := v.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused = v.find(throttled, s.exhausted); refused != nil {
		return 0, refused
	}
	if v.operation != "GetItem" {
		if refused = v.find(conflict, func(v *visit, item string) bool { return s.flying[item] }); refused != nil {
			return 0, refused
		}
	}
	for _, item := range v.items {
		if !isRead(v.operation) {
			s.writes[item]++
		}
		if v.operation == transactWrite {
			s.flying[item] = true
		}
		before += s.writes[item]
	}
	return before, nil
}

const transactWrite = "TransactWriteItems"

// moved refuses a transaction that reads where a write has begun since.
func (v *visit) moved(before int) []string {
	s := v.service
	s.mu.Lock()
	defer s.mu.Unlock()
	now := 0
	for _, item := range v.items {
		now += s.writes[item]
	}
	if now == before {
		return nil
	}
	return v.find(conflict, func(*visit, string) bool { return true })
}

// find gives the code to the items of which something is true; nil: it is of none.
func (v *visit) find(code string, is func(*visit, string) bool) (codes []string) {
	for i, item := range v.items {
		if is(v, item) {
			if codes == nil {
				codes = make([]string, len(v.items))
			}
			codes[i] = code
		}
	}
	return codes
}

// exhausted reports whether the item's partition takes no more. What it was asked
// for in one request may be more than it had left.
func (s *service) exhausted(v *visit, item string) bool {
	if !s.limited {
		return false
	}
	p := s.partitions[item].after(time.Now())
	s.partitions[item] = p
	if isRead(v.operation) {
		return p.left.read <= 0
	}
	return p.left.write <= 0
}

// leave ends the visit; it has billed so many units.
func (v *visit) leave(billed float64) {
	if v == nil {
		return
	}
	s := v.service
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range v.items {
		if v.operation == transactWrite {
			delete(s.flying, item)
		}
		if s.limited {
			p := s.partitions[item].after(time.Now())
			p.left.add(v.operation, -billed/float64(len(v.items)))
			s.partitions[item] = p
		}
	}
}

// refusal is the service's answer to a request that it refuses, with a code for
// each item that was in the way.
func (v *visit) refusal(codes []string) *http.Response {
	type reason struct{ Code, Message string }
	answer := struct {
		Type    string   `json:"__type"`
		Message string   `json:"message"`
		Reasons []reason `json:"CancellationReasons,omitempty"`
	}{Type: "TransactionConflictException", Message: "Transaction is ongoing for the item"}
	switch {
	case v.operation == transactWrite || v.operation == "TransactGetItems":
		answer.Type = "TransactionCanceledException"
		for i, code := range codes {
			if code == "" {
				codes[i] = "None"
			}
			answer.Reasons = append(answer.Reasons, reason{Code: codes[i]})
		}
		answer.Message = fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons %v", codes)
	case slices.Contains(codes, throttled):
		answer.Type, answer.Message = "ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded"
	}
	answer.Type = "com.amazonaws.dynamodb.v20120810#" + answer.Type
	body, _ := json.Marshal(answer) // nothing in it can fail
	return &http.Response{
		StatusCode: http.StatusBadRequest, Status: "400 Bad Request", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"},
			"X-Amz-Crc32":  {strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)},
		},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// itemsOf are the items that a request names.
func itemsOf(body []byte) (items []string) {
	type named struct {
		Key  map[string]value
		Item map[string]value // of a put
	}
	var request struct {
		named
		TransactItems             []map[string]named
		KeyConditionExpression    string
		ExpressionAttributeValues map[string]value
	}
	if json.Unmarshal(body, &request) != nil {
		return nil
	}
	if request.KeyConditionExpression != "" { // a query, of a whole partition
		for _, v := range request.ExpressionAttributeValues {
			if v.S != nil {
				items = append(items, *v.S)
			}
		}
		return items
	}
	add := func(n named) {
		key := n.Key
		if key == nil {
			key = map[string]value{"id": n.Item["id"]}
		}
		id, whole := "", false
		for _, name := range slices.Sorted(maps.Keys(key)) { // of other tables, too
			if name == "slot" { // the rows of a mailbox share its partition
				continue
			}
			if part := key[name].S; part != nil {
				id, whole = id+*part, true
			}
		}
		if whole {
			items = append(items, id)
		}
	}
	add(request.named)
	for _, part := range request.TransactItems {
		for _, n := range part {
			add(n)
		}
	}
	return items
}
