package adoption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/guregu/dynamo/v2"

	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// shown

// Player is coded by guregu/dynamo and by Dynahold.
type Player struct {
	ID      string                   `dynamo:"id,hash" repo:"pk"`
	Name    string                   `dynamo:"name,omitempty"`
	Score   int                      `dynamo:"score"`
	Joined  time.Time                `dynamo:"joined"`
	Seen    *attributevalue.UnixTime `dynamo:"seen,omitempty"` // was: time.Time, `dynamo:"seen,unixtime"`
	Tags    []string                 `dynamo:"tags,set,omitempty" dynamodbav:"tags,stringset"`
	Version int64                    `dynamo:"version" repo:"version"` // new; for optimistic alone
}

// gureguCoding goes by the tags of guregu/dynamo, and lets types encode themselves as texts.
var gureguCoding = repo.TableConfig{
	EncoderOptions: func(o *attributevalue.EncoderOptions) { o.TagKey, o.UseEncodingMarshalers = "dynamo", true },
	DecoderOptions: func(o *attributevalue.DecoderOptions) { o.TagKey, o.UseEncodingUnmarshalers = "dynamo", true },
}

// end of what is shown

// level encodes itself as a text.
type level int

func (l level) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "level %d", int(l)), nil }

func (l *level) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(strings.TrimPrefix(string(text), "level "))
	*l = level(n)
	return err
}

// cents has the methods of guregu/dynamo's own.
type cents int

func (c cents) MarshalDynamo() (types.AttributeValue, error) {
	return text(fmt.Sprintf("%d.%02d", c/100, c%100)), nil
}

func (c *cents) UnmarshalDynamo(av types.AttributeValue) error {
	s, ok := av.(*types.AttributeValueMemberS)
	if !ok {
		return fmt.Errorf("%T is no price", av)
	}
	n, err := strconv.Atoi(strings.Replace(s.Value, ".", "", 1))
	*c = cents(n)
	return err
}

// price is cents after the move: methods of attributevalue's, which guregu/dynamo calls too.
type price cents

func (p price) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return cents(p).MarshalDynamo()
}

func (p *price) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	return (*cents)(p).UnmarshalDynamo(av)
}

type place struct {
	Town   string `dynamo:"town"`
	Street string `dynamo:"street"`
}

// before is a struct as users of guregu/dynamo have it, with each of its encodings.
type before struct {
	ID     string              `dynamo:"id,hash"`
	Name   string              `dynamo:"name"`
	Note   string              `dynamo:"note,omitempty"`
	Blank  string              `dynamo:"blank,allowempty"`
	Joined time.Time           `dynamo:"joined"`
	Seen   time.Time           `dynamo:"seen,unixtime"`
	Left   time.Time           `dynamo:"left,omitempty"`
	Tags   []string            `dynamo:"tags,set"`
	Scores []int               `dynamo:"scores,set"`
	Groups map[string]struct{} `dynamo:"groups,set"`
	List   []string            `dynamo:"list"`
	Body   []byte              `dynamo:"body"`
	Counts map[string]int      `dynamo:"counts"`
	Nick   *string             `dynamo:"nick,null"`
	Level  level               `dynamo:"level"`
	Price  cents               `dynamo:"price"`
	Home   place               `dynamo:"home"`
	Plain  int
}

// after is the same after the move.
type after struct {
	ID      string                   `dynamo:"id,hash" repo:"pk"`
	Name    string                   `dynamo:"name,omitempty"`
	Note    string                   `dynamo:"note,omitempty"`
	Blank   string                   `dynamo:"blank,allowempty"`
	Joined  time.Time                `dynamo:"joined"`
	Seen    *attributevalue.UnixTime `dynamo:"seen,omitempty"`
	Left    *time.Time               `dynamo:"left,omitempty"`
	Tags    []string                 `dynamo:"tags,set,omitempty" dynamodbav:"tags,stringset"`
	Scores  []int                    `dynamo:"scores,set,omitempty" dynamodbav:"scores,numberset"`
	Groups  []string                 `dynamo:"groups,set,omitempty" dynamodbav:"groups,stringset"`
	List    []string                 `dynamo:"list"`
	Body    []byte                   `dynamo:"body,omitempty"`
	Counts  map[string]int           `dynamo:"counts,omitempty"`
	Nick    *string                  `dynamo:"nick,null"`
	Level   level                    `dynamo:"level"`
	Price   price                    `dynamo:"price"`
	Home    place                    `dynamo:"home"`
	Plain   int
	Version int64 `dynamo:"version" repo:"version"`
}

var berlin = time.FixedZone("", 3600)

func full() before {
	nick := "Jo"
	return before{
		ID: "full", Name: "Joan", Note: "n", Blank: "b", Joined: time.Date(2026, 1, 2, 3, 4, 5, 600, berlin), Seen: time.Unix(1767319445, 0), Left: time.Unix(5, 0).UTC(),
		Tags: []string{"b", "a"}, Scores: []int{3, 1}, Groups: map[string]struct{}{"g": {}}, List: []string{"x", ""}, Body: []byte{1}, Counts: map[string]int{"z": 1},
		Nick: &nick, Level: 3, Price: 1234, Home: place{Town: "T"}, Plain: 4,
	}
}

// ours are the attributes that the library adds.
func ours(name string, _ types.AttributeValue) bool {
	return slices.Contains([]string{"version", "writers", "writersUnread", "lockToken", "lockStolen"}, name)
}

func same(t *testing.T, what string, got, want row) {
	t.Helper()
	got = maps.Clone(got)
	maps.DeleteFunc(got, ours)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(
		types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberSS{}, types.AttributeValueMemberNS{},
		types.AttributeValueMemberL{}, types.AttributeValueMemberM{}, types.AttributeValueMemberNULL{}),
		cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A change leaves what it does not change as guregu/dynamo wrote it, to the byte.
func TestItemsOfGureguStayAsTheyAre(t *testing.T) {
	theirs := guregu(t, before{})
	table := must(repo.NewTable[after](client, theirs.Name(), gureguCoding))(t)
	check(t, table.EnsureTable(t.Context()))
	versions, locks := must(optimistic.New(table, optimistic.Config{}))(t), must(pessimistic.New(table, pessimistic.Config{}))(t)
	for _, item := range []before{full(), {ID: "empty"}} {
		check(t, theirs.Put(item).Run(t.Context()))
		was, key := raw(t, theirs.Name(), "id", item.ID), repo.Key{Partition: item.ID}
		change := func(_ context.Context, a *after) error { a.Plain++; return nil }
		must(versions.Update(t.Context(), key, change))(t)
		read := must(locks.Update(t.Context(), key, change))(t)
		if read.Version != 2 || read.Plain != item.Plain+2 || read.Name != item.Name || !read.Joined.Equal(item.Joined) || len(read.Tags) != len(item.Tags) || read.Price != price(item.Price) || read.Level != item.Level {
			t.Errorf("read %+v of %+v", read, item)
		}
		was["Plain"] = number(strconv.Itoa(item.Plain + 2))
		same(t, item.ID, raw(t, theirs.Name(), "id", item.ID), was)
		var back before
		check(t, theirs.Get("id", item.ID).One(t.Context(), &back))
		item.Plain += 2
		if !back.Joined.Equal(item.Joined) || back.Plain != item.Plain || back.Price != item.Price || len(back.Groups) != len(item.Groups) {
			t.Errorf("guregu/dynamo reads %+v, not %+v", back, item)
		}
	}
}

// What a change writes has the form in which guregu/dynamo writes it.
func TestWeWriteAsGureguWrites(t *testing.T) {
	theirs := guregu(t, before{})
	table := must(repo.NewTable[after](client, theirs.Name(), gureguCoding))(t)
	locks := must(pessimistic.New(table, pessimistic.Config{}))(t)
	check(t, theirs.Put(before{ID: "full"}).Run(t.Context()))
	check(t, theirs.Put(before{ID: "same"}).Run(t.Context()))
	b := full()
	fill := func(_ context.Context, a *after) error {
		seen := attributevalue.UnixTime(b.Seen)
		*a = after{ID: a.ID, Name: b.Name, Note: b.Note, Blank: b.Blank, Joined: b.Joined, Seen: &seen, Left: &b.Left, Tags: b.Tags, Scores: b.Scores, Groups: []string{"g"},
			List: b.List, Body: b.Body, Counts: b.Counts, Nick: b.Nick, Level: b.Level, Price: price(b.Price), Home: b.Home, Plain: b.Plain, Version: a.Version}
		return nil
	}
	must(locks.Update(t.Context(), repo.Key{Partition: "full"}, fill))(t)
	got, want := raw(t, theirs.Name(), "id", "full"), must(dynamo.MarshalItem(b))(t)
	// The one difference: inside a map attributevalue writes an empty text, which guregu/dynamo leaves out.
	want["home"] = &types.AttributeValueMemberM{Value: row{"town": text("T"), "street": text("")}}
	same(t, "filled", got, want)
	empty := func(_ context.Context, a *after) error { *a = after{ID: a.ID, Version: a.Version}; return nil }
	must(locks.Update(t.Context(), repo.Key{Partition: "full"}, empty))(t)
	want = must(dynamo.MarshalItem(before{ID: "full"}))(t)
	want["home"] = &types.AttributeValueMemberM{Value: row{"town": text(""), "street": text("")}}
	want["list"] = &types.AttributeValueMemberNULL{Value: true} // guregu/dynamo writes an empty list, and reads either
	same(t, "emptied", raw(t, theirs.Name(), "id", "full"), want)
	var back before
	check(t, theirs.Get("id", "full").One(t.Context(), &back))
}

// Tags that would change the form of an item are refused before anything is written.
func TestWhatWouldChangeItsFormIsRefused(t *testing.T) {
	for name, err := range map[string]error{
		"a set": tableOf[struct {
			ID   string   `dynamo:"id" repo:"pk"`
			Tags []string `dynamo:"tags,set"`
		}](),
		"a map as a set": tableOf[struct {
			ID   string              `dynamo:"id" repo:"pk"`
			Tags map[string]struct{} `dynamo:"tags,set" dynamodbav:"tags,stringset"`
		}](),
		"seconds": tableOf[struct {
			ID   string    `dynamo:"id" repo:"pk"`
			Seen time.Time `dynamo:"seen,unixtime"`
		}](),
		"methods of guregu/dynamo": tableOf[struct {
			ID    string `dynamo:"id" repo:"pk"`
			Price cents  `dynamo:"price"`
		}](),
	} {
		if !errors.Is(err, repo.ErrSchema) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func tableOf[T any]() error {
	_, err := repo.NewTable[T](client, "x", gureguCoding)
	return err
}

// The struct of the document, on items that guregu/dynamo has written with the one before.
func TestThePlayerOfTheDocument(t *testing.T) {
	type old struct {
		ID     string    `dynamo:"id,hash"`
		Name   string    `dynamo:"name"`
		Score  int       `dynamo:"score"`
		Joined time.Time `dynamo:"joined"`
		Seen   time.Time `dynamo:"seen,unixtime"`
		Tags   []string  `dynamo:"tags,set"`
	}
	theirs := guregu(t, old{})
	table := must(repo.NewTable[Player](client, theirs.Name(), gureguCoding))(t)
	players := must(optimistic.New(table, optimistic.Config{}))(t)
	item := old{ID: "p", Score: 1, Joined: time.Now(), Seen: time.Unix(1767319445, 0), Tags: []string{"x"}}
	check(t, theirs.Put(item).Run(t.Context()))
	must(players.Update(t.Context(), repo.Key{Partition: "p"}, func(_ context.Context, p *Player) error { p.Score++; p.Tags = append(p.Tags, "y"); return nil }))(t)
	var o old
	check(t, theirs.Get("id", "p").One(t.Context(), &o))
	var p Player
	check(t, theirs.Get("id", "p").One(t.Context(), &p))
	if o.Score != 2 || len(o.Tags) != 2 || !o.Seen.Equal(item.Seen) || p.Version != 1 || p.Seen == nil || !time.Time(*p.Seen).Equal(item.Seen) {
		t.Errorf("the struct before reads %+v, that after %+v", o, p)
	}
	if never := must(table.Encode(Player{ID: "q"}))(t)["seen"]; never != nil {
		t.Errorf("a time that was never set is written, as %v", never)
	}
}
