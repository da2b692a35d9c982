package combine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/combine"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Whose memory is read, and when.

// shelf is a type with all that a change can share with its caller: maps,
// lists, bytes, and values that encode themselves to what they keep.
type shelf struct {
	ID      string            `dynamodbav:"id" repo:"pk"`
	Books   map[string]string `dynamodbav:"books"`
	List    []string          `dynamodbav:"list"`
	Bytes   []byte            `dynamodbav:"bytes"`
	Box     box               `dynamodbav:"box"`
	Any     any               `dynamodbav:"any"`
	Mine    int               `dynamodbav:"mine"`
	Version int64             `dynamodbav:"version" repo:"version"`
}

// box encodes itself to the very value that it keeps, and keeps what it is
// decoded from.
type box struct{ m *types.AttributeValueMemberM }

func (b box) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if b.m == nil {
		return &types.AttributeValueMemberNULL{Value: true}, nil
	}
	return b.m, nil
}

func (b *box) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	b.m, _ = av.(*types.AttributeValueMemberM)
	return nil
}

func newBox(text string) box {
	return box{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"text": &types.AttributeValueMemberS{Value: text}}}}
}

func (b box) text() string {
	if b.m == nil {
		return ""
	}
	s, _ := b.m.Value["text"].(*types.AttributeValueMemberS)
	return s.Value
}

// memory is what a caller lends to the item, and uses again afterwards.
type memory struct {
	books map[string]string
	list  []string
	bytes []byte
	box   box
	other box
}

func newMemory() *memory {
	return &memory{map[string]string{"a": "good"}, []string{"good"}, []byte("good"), newBox("good"), newBox("good")}
}

func (m *memory) lend(s *shelf) {
	s.Books, s.List, s.Bytes, s.Box, s.Any = m.books, m.list, m.bytes, m.box, m.other
}

// use writes to all of it: beside a reader that is a race, and with maps it ends
// the process.
func (m *memory) use() {
	m.books["a"], m.books["b"], m.list[0] = "bad", "bad", "bad"
	copy(m.bytes, "bad!")
	m.box.m.Value["text"], m.other.m.Value["text"] = &types.AttributeValueMemberS{Value: "bad"}, &types.AttributeValueMemberS{Value: "bad"}
}

func wantGood(t *testing.T, s shelf) {
	t.Helper()
	var other string
	if m, ok := s.Any.(map[string]any); ok {
		other, _ = m["text"].(string)
	}
	if len(s.Books) != 1 || s.Books["a"] != "good" || s.List[0] != "good" || string(s.Bytes) != "good" || s.Box.text() != "good" || other != "good" {
		t.Errorf("the write carries %+v, box %q, any %q: what the caller did after its verdict", s, s.Box.text(), other)
	}
}

// A caller whose context ends is told that its outcome is unknown while the
// change of another still runs. What it lent to the item is its own then.
func TestTheMemoryOfACallerThatWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := tableOf[shelf](t)
		mine := newMemory()
		ctx, cancel := context.WithCancel(t.Context())
		first := participant(ctx, false, func(_ context.Context, s *shelf) error { mine.lend(s); return nil }, nil)
		toldFirst := make(chan error, 1)
		used := make(chan struct{})
		go func() {
			_, err := first.Await()
			mine.use()
			close(used)
			toldFirst <- err
		}()
		second := participant(t.Context(), false, func(_ context.Context, s *shelf) error {
			cancel()
			<-used
			s.Mine++
			return nil
		}, nil)
		toldSecond := make(chan error, 1)
		go func() { _, err := second.Await(); toldSecond <- err }()
		b := groupOf(table, first, second)
		work := shelf{ID: "a", Version: 1}
		rig.Is(t, edit(t, table, b, &work))
		wantGood(t, work)
		if work.Mine != 1 || b.Count() != 2 {
			t.Errorf("the write carries %+v, %d changes", work, b.Count())
		}
		b.Conclude(nil)
		rig.Is(t, <-toldFirst, repo.ErrOutcomeUnknown, context.Canceled)
		rig.Is(t, <-toldSecond)
	})
}

// A change that panics, or ends its goroutine, leaves nothing behind that is
// read, and takes nobody along.
func TestTheMemoryOfAChangeThatDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			table := tableOf[shelf](t)
			mine, good := newMemory(), newMemory()
			used := make(chan struct{})
			first := participant(t.Context(), false, func(_ context.Context, s *shelf) error { mine.lend(s); end(); return nil }, nil)
			go func() {
				defer close(used)
				defer mine.use()
				defer func() { _ = recover() }()
				_, _ = first.Await()
			}()
			second := participant(t.Context(), false, func(_ context.Context, s *shelf) error {
				<-used
				if s.Books != nil || s.List != nil || s.Box.m != nil {
					t.Errorf("it sees %+v", s)
				}
				good.lend(s)
				return nil
			}, nil)
			told := make(chan error, 1)
			go func() { _, err := second.Await(); told <- err }()
			b := groupOf(table, first, second)
			work := shelf{ID: "a", Version: 1}
			err := edit(t, table, b, &work)
			if b.Count() == 0 { // the only caller had ended before the second was drawn
				rig.Is(t, err, context.Canceled)
				return
			}
			rig.Is(t, err)
			wantGood(t, work)
			b.Conclude(nil)
			rig.Is(t, <-told)
		})
	}
}

// What one change shares with the item is not what the next one gets, nor what
// a repetition of the batch starts from.
func TestChangesDoNotShareMemory(t *testing.T) {
	table := tableOf[shelf](t)
	lent := []*memory{newMemory(), newMemory(), newMemory()}
	refused := errors.New("refused")
	var parts []*combine.Participant
	var told []chan shelf
	for i, m := range lent {
		p := participant(t.Context(), false, func(_ context.Context, s *shelf) error {
			if i > 0 && (s.Books["a"] != "good" || s.Box.text() != "good") {
				t.Errorf("change %d sees %+v, box %q", i, s, s.Box.text())
			}
			if i == 1 { // spoils what it got, and fails
				s.Books["a"], s.Box.m.Value["text"] = "bad", &types.AttributeValueMemberS{Value: "bad"}
				return refused
			}
			m.lend(s)
			s.Mine++
			return nil
		}, nil)
		got := make(chan shelf, 1)
		go func() { s, _ := typed.As[shelf](p.Await()); got <- s }()
		parts, told = append(parts, p), append(told, got)
	}
	b := groupOf(table, parts...)
	for range 3 { // conflicts
		work := shelf{ID: "a", Version: 1}
		rig.Is(t, edit(t, table, b, &work))
		wantGood(t, work)
		if work.Mine != 2 || b.Count() != 2 {
			t.Errorf("the write carries %+v, %d changes", work, b.Count())
		}
	}
	b.Conclude(nil)
	for i, want := range []int64{2, 0, 3} {
		if got := <-told[i]; got.Version != want {
			t.Errorf("caller %d got %+v, want version %d", i, got, want)
		}
	}
}

// The numbers of what an interface holds lose digits where they are decoded. A
// batch must write them as its change has set them, as a change alone does.
func TestABatchWritesWhatItsChangesSet(t *testing.T) {
	table := tableOf[shelf](t)
	const big = int64(9007199254740993) // 2^53 + 1
	set := participant(t.Context(), false, func(_ context.Context, s *shelf) error { s.Any = big; return nil }, nil)
	other := participant(t.Context(), false, func(_ context.Context, s *shelf) error { s.Mine++; return nil }, nil)
	for _, p := range []*combine.Participant{set, other} {
		go func() { _, _ = p.Await() }()
	}
	b := groupOf(table, set, other)
	raw := rig.Must(table.Encode(&shelf{ID: "a", Version: 1}))(t)
	e := rig.Must(b.Edit(b.Context(), rig.Must(typed.SnapshotOf(table, raw))(t)))(t)
	b.Conclude(nil)
	for _, a := range e.Diff.Set {
		if n, ok := a.Value.(*types.AttributeValueMemberN); a.Name == "any" && (!ok || n.Value != "9007199254740993") {
			t.Errorf("the write carries %+v", a.Value)
		}
	}
}

// What a change did to its copy before it failed, nobody else sees.
func TestAChangeThatFailsSpoilsNothing(t *testing.T) {
	table := tableOf[shelf](t)
	refused := errors.New("refused")
	spoils := participant(t.Context(), false, func(_ context.Context, s *shelf) error {
		s.Books["a"], s.List[0], s.Bytes[0], s.Box.m.Value["text"] = "bad", "bad", 'b', &types.AttributeValueMemberS{Value: "bad"}
		return refused
	}, nil)
	adds := participant(t.Context(), false, func(_ context.Context, s *shelf) error { s.Mine++; return nil }, nil)
	told := make(chan shelf, 1)
	go func() { _, _ = spoils.Await() }()
	go func() { s, _ := typed.As[shelf](adds.Await()); told <- s }()
	b := groupOf(table, spoils, adds)
	work := shelf{ID: "a", Version: 1}
	newMemory().lend(&work)
	rig.Is(t, edit(t, table, b, &work))
	wantGood(t, work)
	b.Conclude(nil)
	wantGood(t, <-told)
}
