package main

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/events"
)

// queue stands for an SQS standard queue, as Lambda delivers its messages: in batches,
// at least once, those that fail again, in another order, and to the dead letters what
// fails too often.
type queue struct {
	ready chan delivery  // to be handed out
	open  sync.WaitGroup // deliveries that are not settled

	mu       sync.Mutex
	receives map[string]int  // guarded by mu, as all below: by message
	copies   map[string]int  // deliveries of a message that are not settled
	deleted  map[string]bool // messages that some delivery has settled
	dead     map[string]events.SQSMessage
}

// delivery is a batch on its way.
type delivery struct {
	name    string
	records []events.SQSMessage
}

// maxReceives is the template's maxReceiveCount.
const maxReceives = 5

func newQueue() *queue {
	return &queue{ready: make(chan delivery, 1000), receives: map[string]int{}, copies: map[string]int{},
		deleted: map[string]bool{}, dead: map[string]events.SQSMessage{}}
}

// put makes a delivery of a batch.
func (q *queue) put(name string, records []events.SQSMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deliver(name, records)
}

// deliver is put with mu held.
func (q *queue) deliver(name string, records []events.SQSMessage) {
	if len(records) == 0 {
		return
	}
	q.open.Add(1)
	d := delivery{name, slices.Clone(records)}
	for i, m := range d.records {
		q.receives[m.MessageId]++
		q.copies[m.MessageId]++
		d.records[i].Attributes = map[string]string{"ApproximateReceiveCount": strconv.Itoa(q.receives[m.MessageId])}
	}
	q.ready <- d
}

// settle deletes the messages of a delivery, but for those that failed: they come
// again.
func (q *queue) settle(d delivery, failed func(id string) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.open.Done()
	var again []events.SQSMessage
	for _, m := range d.records {
		id := m.MessageId
		q.copies[id]--
		switch {
		case !failed(id):
			q.deleted[id] = true
		case q.deleted[id] || q.copies[id] > 0: // another copy decides
		case q.receives[id] >= maxReceives:
			q.dead[id] = m
		default:
			again = append(again, m)
		}
	}
	q.deliver(strings.TrimSuffix(d.name, " again")+" again", again)
}

// everything is what failed where no answer came.
func everything(string) bool { return true }
