package load

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// tally counts the measured requests of all processes and what they bill.
type tally struct {
	size int // bytes of an item, about

	mu   sync.Mutex
	bill bill // guarded by mu
}

// bill is what was asked of the engine.
type bill struct {
	operations map[string]int
	wasted     int
	all, hot   units // hot: of requests for the first item
}

type units struct{ read, write float64 }

func (u *units) add(operation string, n float64) {
	if isRead(operation) {
		u.read += n
	} else {
		u.write += n
	}
}

func newTally(size int) *tally { return &tally{size: size, bill: bill{operations: map[string]int{}}} }

func (t *tally) request(operation string) {
	t.mu.Lock()
	t.bill.operations[operation]++
	t.mu.Unlock()
}

// weigh tells what a request bills, and whether it was a write in vain.
func (t *tally) weigh(operation string, status int, body []byte) (units float64, wasted bool) {
	if status == http.StatusOK {
		return consumed(body), false
	}
	units, wasted = t.refused(operation, body)
	return units, wasted && !isRead(operation)
}

// readPerWrite is how many KB a unit reads; one writes 1 KB.
const readPerWrite = 4

func (t *tally) answer(operation string, hot bool, units float64, wasted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wasted {
		t.bill.wasted++
	}
	t.bill.all.add(operation, units)
	if hot {
		t.bill.hot.add(operation, units)
	}
}

func (t *tally) sum() bill {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.bill
	b.operations = maps.Clone(b.operations)
	return b
}

// consumed reads the billed units from the answer of a request that asked for
// them. They are looked for as text: decoding a large item only to find them
// would cost as much as the contender's own work.
func consumed(body []byte) (units float64) {
	const name = `"ConsumedCapacity":`
	at := bytes.LastIndex(body, []byte(name))
	if at < 0 {
		return 0
	}
	var raw json.RawMessage
	if json.NewDecoder(bytes.NewReader(body[at+len(name):])).Decode(&raw) != nil {
		return 0
	}
	type capacity struct{ CapacityUnits float64 }
	var all []capacity // of a transaction or a batch
	if json.Unmarshal(raw, &all) != nil {
		all = make([]capacity, 1)
		_ = json.Unmarshal(raw, &all[0]) // what is no capacity bills nothing
	}
	for _, c := range all {
		units += c.CapacityUnits
	}
	return units
}

// refused is what a request bills whose condition failed or that was cancelled: the
// item's size, as if it had been answered with success. Engines do not tell it. The item
// is weighed where the answer shows it.
func (t *tally) refused(operation string, body []byte) (units float64, wasted bool) {
	type reason struct{ Code string }
	var failure struct {
		Type                string `json:"__type"`
		Item                map[string]value
		CancellationReasons []reason
	}
	if json.Unmarshal(body, &failure) != nil {
		return 0, false
	}
	_, code, found := strings.Cut(failure.Type, "#")
	if !found {
		code = failure.Type
	}
	switch code {
	case "ConditionalCheckFailedException":
		size := t.size
		if len(failure.Item) > 0 {
			size = weight(failure.Item)
		}
		return kilobytes(size), true
	case "TransactionConflictException":
		return 0, true
	case "TransactionCanceledException":
		slow := slices.Contains(failure.CancellationReasons, reason{throttled})
		if slow && !slices.ContainsFunc(failure.CancellationReasons, func(r reason) bool { return r.Code != throttled && r.Code != "None" }) {
			return 0, false // as of a single write: nothing was tried
		}
		units = kilobytes(t.size)
		if isRead(operation) {
			units = math.Ceil(units / readPerWrite)
		}
		return 2 * units * float64(max(1, len(failure.CancellationReasons))), true // transactions bill twice, each item for itself
	}
	return 0, false
}

// kilobytes is a size as writes are billed, at least one.
func kilobytes(size int) float64 { return float64(max(1, (size+1023)/1024)) }
