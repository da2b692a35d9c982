package delegate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// The attributes of a row of mail, beside its key. It is marked as a tombstone, which readers
// of the items take for nothing, those of other programs and versions too.
const (
	aSeq     = "mailSeq"     // N: grows with each mail of the slot
	aLife    = "mailLife"    // S: of the item
	aOrders  = "mailOrders"  // L of L of S: command, arguments, id of the operation
	aUntil   = "mailUntil"   // N: when it is too old to be carried out, Unix seconds
	aAnswers = "mailAnswers" // L of S: in the place of the commands
	aItem    = "mailItem"    // S: the item's key, for operators
)

// rowPrefix begins the partition keys of all rows of mail.
const rowPrefix = stored.RowPrefix + "mail:"

// kept is for how long a row stays that nobody uses: longer than a copy of a request can
// live, which is a signature's quarter of an hour.
const kept = 2 * time.Hour

// mailbox is where mail is put.
type mailbox struct {
	table      *stored.Table
	queries    querier
	pk, sk     string // types of the key attributes, S or B
	itemsTable string
}

// querier is what looks need of a client beside ddb.Client; each repo.Client has it.
type querier interface {
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// newMailbox uses a table: the items' own, or one beside it.
func newMailbox(table *repo.KeyTable, items string, beside bool) (*mailbox, error) {
	m := &mailbox{table: link.Table(table), itemsTable: items}
	m.queries = m.table.Client.(querier)
	for _, kinds := range [][2]any{{"x", "x"}, {"x", []byte("x")}, {[]byte("x"), "x"}, {[]byte("x"), []byte("x")}} {
		raw, err := table.EncodeKey(repo.Key{Partition: kinds[0], Sort: kinds[1]})
		if err != nil {
			continue
		}
		m.pk, m.sk = ddb.TypeName(raw[m.table.Partition]), ddb.TypeName(raw[m.table.Sort])
		return m, m.checkNames()
	}
	if beside {
		return nil, fmt.Errorf("%w: Mail: table %q needs a partition key and a sort key, of strings or bytes: make one with NewMailTable", repo.ErrConfig, table.Name())
	}
	return nil, fmt.Errorf("%w: table %q has no sort key, or a key of numbers, so mail cannot lie beside its items: set Config.Mail to a table of its own, made with NewMailTable", repo.ErrConfig, table.Name())
}

// checkNames refuses a table whose names would be those of a row of mail.
func (m *mailbox) checkNames() error {
	names := []string{aSeq, aLife, aOrders, aUntil, aAnswers, aItem}
	if name := m.table.Attr.Clash(names, nil); name != "" {
		return fmt.Errorf("%w: the attributes of table %q have the name %q, which a row of mail keeps for itself", repo.ErrConfig, m.table.Name, name)
	}
	for _, name := range names {
		if m.table.IsKey(name) {
			return fmt.Errorf("%w: the key of table %q has the name %q, which a row of mail keeps for itself: set Config.Mail", repo.ErrConfig, m.table.Name, name)
		}
	}
	return nil
}

// base is what the partition keys of an item's mail begin with. The item's own key may be
// as long as a key can be.
func (m *mailbox) base(key string) string {
	sum := sha256.Sum256([]byte(m.itemsTable + "\x00" + key))
	return rowPrefix + base64.RawURLEncoding.EncodeToString(sum[:18]) + "#"
}

func keyValue(kind, text string) types.AttributeValue {
	if kind == "B" {
		return ddb.Bytes([]byte(text))
	}
	return ddb.Text(text)
}

// newSlot is a sender's place among those of one item, in one of so many partitions.
func newSlot(shards int) string {
	var b [7]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return strconv.Itoa(int(b[0])%shards) + "." + base64.RawURLEncoding.EncodeToString(b[1:])
}

// inAnother is the slot of the same sender in any partition. It may be one in which the sender
// was before: its numbers grow on, and of rows there are no more than senders in each.
func inAnother(slot string, shards int) string {
	return strconv.Itoa(mrand.IntN(shards)) + slot[strings.IndexByte(slot, '.'):]
}

// shardOf is the partition in which a slot is; -1 if it is none.
func shardOf(slot string) int {
	for i := range len(slot) {
		if slot[i] == '.' {
			if n, err := strconv.Atoi(slot[:i]); err == nil {
				return n
			}
		}
	}
	return -1
}

func (m *mailbox) key(base, slot string) ddb.Item {
	return ddb.Item{m.table.Partition: keyValue(m.pk, base+strconv.Itoa(shardOf(slot))), m.table.Sort: keyValue(m.sk, slot)}
}

// order is one command as it travels.
type order struct{ command, args, once string }

// mail is a row, read.
type mail struct {
	delegation.Mail
	orders  []order
	answers []string
	until   time.Time
}

// post is the write that puts a mail, whose number nobody has used before.
func (m *mailbox) post(base, item string, out mail) (*dynamodb.UpdateItemInput, error) {
	w := m.table.NewWrite()
	orders := &types.AttributeValueMemberL{}
	for _, o := range out.orders {
		orders.Value = append(orders.Value, delegation.TextList([]string{o.command, o.args, o.once}))
	}
	w.Set(aSeq, ddb.Integer(out.Seq))
	w.Set(aLife, ddb.Text(out.Life))
	w.Set(aOrders, orders)
	w.Set(aUntil, ddb.Number(ddb.Seconds(out.until)))
	w.Set(aItem, ddb.Text(item))
	w.SetTo(m.table.Attr.TTL, m.keep(w))
	w.Remove(aAnswers)
	w.If("(attribute_not_exists(" + w.Name(aSeq) + ") OR " + w.Name(aSeq) + " < " + w.Value(ddb.Integer(out.Seq)) + ")")
	return w.Update(m.key(base, out.Slot))
}

// answer is the write that puts answers in the place of a mail's commands, or of those of
// an earlier one, or where the row is gone: so no copy of a mail comes back.
func (m *mailbox) answer(base, slot string, s delegation.Served) (*dynamodb.UpdateItemInput, error) {
	w := m.table.NewWrite()
	w.Set(aSeq, ddb.Integer(s.Seq))
	w.Set(aAnswers, delegation.TextList(s.Answers))
	// By the sender's clock: with the time of a leader whose clock is behind TTL would remove the
	// answers at once, and a late copy of the mail could come back.
	w.SetTo(m.table.Attr.TTL, "if_not_exists("+w.Name(m.table.Attr.TTL)+", "+m.keep(w)+")")
	w.Remove(aOrders)
	w.If("(attribute_not_exists(" + w.Name(aSeq) + ") OR " + w.Name(aSeq) + " <= " + w.Value(ddb.Integer(s.Seq)) + ")")
	return w.Update(m.key(base, slot))
}

// keep hides a row from readers, and says when nobody needs it any more.
func (m *mailbox) keep(w *ddb.Write) (until string) {
	w.Set(m.table.Attr.Tombstone, ddb.True())
	return w.Value(ddb.Integer(m.table.Clock().Add(kept).Unix()))
}

var errForeignRow = errors.New("a row under the key of mail is none")

// read reads a row.
func (m *mailbox) read(row ddb.Item) (got mail, err error) {
	got.Slot = ddb.ScalarText(row[m.table.Sort])
	if got.Seq, err = ddb.Int(row[aSeq]); err != nil {
		return got, errForeignRow
	}
	if v, there := row[aAnswers]; there {
		got.answers, got.Answered = delegation.Texts(v)
		if !got.Answered {
			return got, errForeignRow
		}
		return got, nil
	}
	life, ok := row[aLife].(*types.AttributeValueMemberS)
	l, isList := row[aOrders].(*types.AttributeValueMemberL)
	if got.until, err = ddb.Time(row[aUntil]); err != nil || !ok || !isList {
		return got, errForeignRow
	}
	got.Life = life.Value
	for _, v := range l.Value {
		parts, ok := delegation.Texts(v)
		if !ok || len(parts) != 3 {
			return got, errForeignRow
		}
		got.orders = append(got.orders, order{parts[0], parts[1], parts[2]})
	}
	return got, nil
}

// get reads the row of a slot; a zero number where there is none.
func (m *mailbox) get(ctx context.Context, base, slot string, how ddb.Options) (got mail, err error) {
	res := m.table.Read(ctx, m.key(base, slot), how)
	if res.Err != nil || len(res.Item) == 0 {
		return mail{}, res.Err
	}
	return m.read(res.Item)
}

// look reads all mail of a partition, consistently: what the item may have forgotten is
// answered there.
func (m *mailbox) look(ctx context.Context, base string, shard int) (all []mail, err error) {
	w := m.table.NewWrite()
	cond := w.Name(m.table.Partition) + " = :p"
	consistent, of := true, keyValue(m.pk, base+strconv.Itoa(shard))
	in := &dynamodb.QueryInput{
		TableName: &m.table.Name, ConsistentRead: &consistent, KeyConditionExpression: &cond,
		ExpressionAttributeNames:  map[string]string{w.Name(m.table.Partition): m.table.Partition},
		ExpressionAttributeValues: ddb.Item{":p": of},
	}
	asked := ddb.Asked{Of: ddb.Item{m.table.Partition: of}, Sort: m.table.Sort}
	for row, err := range m.table.Pages(ctx, "Query", ddb.Options{Holding: true}, asked, func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) (any, error) {
		in.ExclusiveStartKey = start
		return m.queries.Query(ctx, in, o)
	}) {
		if err != nil {
			return nil, err
		}
		if got, err := m.read(row); err == nil {
			all = append(all, got)
		}
	}
	return all, nil
}
