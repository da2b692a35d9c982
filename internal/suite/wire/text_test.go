package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// texts writes the requests of an operation for people. What differs from run
// to run is replaced by placeholders, which are numbered in the order of their
// first occurrence in the operation.
func texts(t *testing.T, requests []request) (all []string) {
	t.Helper()
	p := &placeholders{ids: map[string]string{}}
	for _, r := range requests {
		var body map[string]any
		decoder := json.NewDecoder(bytes.NewReader(r.body))
		decoder.UseNumber()
		if err := decoder.Decode(&body); err != nil {
			t.Fatalf("%s: %v", r.op, err)
		}
		all = append(all, r.op+"\n"+p.fields(body, "    "))
	}
	return all
}

// fields are the lines of a request, or of one write of a transaction. The names
// and values that expressions refer to are put into them.
func (p *placeholders) fields(body map[string]any, indent string) string {
	names, _ := body["ExpressionAttributeNames"].(map[string]any)
	values, _ := body["ExpressionAttributeValues"].(map[string]any)
	unused := map[string]bool{}
	for placeholder := range names {
		unused[placeholder] = true
	}
	for placeholder := range values {
		unused[placeholder] = true
	}
	var out strings.Builder
	for _, field := range slices.Sorted(maps.Keys(body)) {
		value := body[field]
		switch {
		case field == "ExpressionAttributeNames", field == "ExpressionAttributeValues":
		case field == "TableName":
			fmt.Fprintf(&out, "%s%s: <table>\n", indent, field)
		case field == "ClientRequestToken":
			fmt.Fprintf(&out, "%s%s: %s\n", indent, field, p.text(value.(string)))
		case field == "TransactItems":
			for _, item := range value.([]any) {
				for kind, write := range item.(map[string]any) {
					fmt.Fprintf(&out, "%s%s\n%s", indent, kind, p.fields(write.(map[string]any), indent+"    "))
				}
			}
		case strings.HasSuffix(field, "Expression"):
			expression := reference.ReplaceAllStringFunc(value.(string), func(placeholder string) string {
				delete(unused, placeholder)
				if name, ok := names[placeholder].(string); ok {
					return p.text(name)
				}
				if value, ok := values[placeholder]; ok {
					return p.value(value)
				}
				return placeholder
			})
			fmt.Fprintf(&out, "%s%s: %s\n", indent, field, strings.Join(strings.Fields(expression), " "))
		default:
			fmt.Fprintf(&out, "%s%s: %s\n", indent, field, p.plain(value))
		}
	}
	for _, placeholder := range slices.Sorted(maps.Keys(unused)) {
		fmt.Fprintf(&out, "%sunused: %s\n", indent, placeholder)
	}
	return out.String()
}

// reference is a placeholder in an expression, as the SDK and internal/ddb make
// them.
var reference = regexp.MustCompile(`[#:][A-Za-z0-9_]+`)

// plain writes a field of the request itself, such as a key or an option.
func (p *placeholders) plain(value any) string {
	fields, ok := value.(map[string]any)
	if !ok {
		return fmt.Sprint(value)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if attribute, ok := fields[name].(map[string]any); ok && len(attribute) == 1 {
			all = append(all, p.text(name)+" = "+p.value(attribute))
		} else {
			all = append(all, p.text(name)+" = "+p.plain(fields[name]))
		}
	}
	slices.Sort(all) // placeholders are in the place of some names
	return strings.Join(all, ", ")
}

// value writes an attribute value: texts in quotes, numbers and lists as they
// are, the other types with their names.
func (p *placeholders) value(value any) string {
	attribute, ok := value.(map[string]any)
	if !ok || len(attribute) != 1 {
		return fmt.Sprint(value)
	}
	for kind, v := range attribute {
		switch v := v.(type) {
		case string:
			switch kind {
			case "S":
				return strconv.Quote(p.text(v))
			case "N":
				return p.number(v)
			case "B":
				return "B " + p.bytes(v)
			}
			return kind + " " + v
		case []any: // a list, or a set, whose order means nothing
			var all []string
			for _, element := range v {
				if s, ok := element.(string); ok {
					all = append(all, p.text(s))
				} else {
					all = append(all, p.value(element))
				}
			}
			if kind != "L" {
				slices.Sort(all)
				return kind + " {" + strings.Join(all, ", ") + "}"
			}
			return "[" + strings.Join(all, ", ") + "]"
		case map[string]any:
			return "{" + p.plain(v) + "}"
		default:
			return fmt.Sprint(kind, " ", v)
		}
	}
	return ""
}

// placeholders replace what differs from run to run.
type placeholders struct {
	ids    map[string]string
	tokens []int64 // what those that were seen first were, in microseconds
}

var (
	// An id is crypto/rand.Text or a part of it, or 16 bytes in base 64 after an
	// owner's name, or the beginning of that, or 6 to 9 bytes after the prefix of an attribute, or the token of
	// what was broken.
	idText = regexp.MustCompile(`[A-Z2-7]{13,}|^[A-Z2-7]{10}$|#(?:[\w-]{22}|[\w-]{5,6})$|^[a-z]_[\w-]{8,12}$|^x_\d{16}$`)
	// A row of mail has a hash of its item, and a place at random.
	mailRow  = regexp.MustCompile(`^(dynahold:mail:)[\w-]{24}#\d+$`)
	slotText = regexp.MustCompile(`^\d+\.[\w-]{8}$`)
	// A place in line begins with its time.
	micros = regexp.MustCompile(`\b[0-9a-f]{15}(\b|_)`)
)

func (p *placeholders) text(s string) string {
	s = mailRow.ReplaceAllString(micros.ReplaceAllString(s, "<time>$1"), "$1<item>#<shard>")
	if slotText.MatchString(s) {
		return "<slot>"
	}
	return idText.ReplaceAllStringFunc(s, func(id string) string {
		switch {
		case id[0] == '#' && len(id) <= 1+6:
			return id[:1] + p.id(id[1:1+5]) // a place in the queue
		case id[0] == '#':
			return id[:1] + p.id(id[1:])
		case id[1] == '_':
			return id[:2] + p.id(id[2:])
		}
		return p.id(id)
	})
}

// bytes replaces ids of writers, which are a row of eight bytes each, and places in the
// queue, of four, whose text names the holder to whom the lock was handed over.
func (p *placeholders) bytes(encoded string) string {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil && len(data) == 4 {
		return p.id(base64.RawURLEncoding.EncodeToString(data)[:5])
	}
	if zeros := make([]byte, 4); err == nil && len(data) == 12 && bytes.HasPrefix(data, zeros) { // what a copy of the write may not find
		return "0 " + p.id(string(data[4:]))
	}
	if err != nil || len(data)%8 != 0 {
		return strconv.Quote(string(data))
	}
	var all []string
	for id := range slices.Chunk(data, 8) {
		all = append(all, p.id(string(id)))
	}
	return strings.Join(all, " ")
}

func (p *placeholders) id(id string) string {
	if p.ids[id] == "" {
		p.ids[id] = fmt.Sprintf("<id%d>", len(p.ids)+1)
	}
	return p.ids[id]
}

// virtual is when virtual time begins.
var virtual = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// number replaces times near now, or near the beginning of virtual time, in seconds, and in nanoseconds, and fencing tokens, which
// begin at a time in microseconds and grow by 1.
func (p *placeholders) number(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	now := float64(time.Now().Unix())
	const near = 60 * 24 * 3600
	if began := float64(virtual.Unix()); f < (began+near)*1e9 && f > (began-near)*1e9 || f < (began+near)*1e6 && f > (began-near)*1e6 || f < began+near && f > began-near {
		now = began
	}
	switch {
	case f > now-near && f < now+near:
		return "<time>"
	case math.Abs(f-math.Floor(now/3600)) <= 1: // of ids that are remembered
		return "<epoch>"
	case f > (now-near)*1e9 && f < (now+near)*1e9: // and digits at random
		return "<asked>"
	case f > (now-near)*1e6 && f < (now+near)*1e6:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return s
		}
		for i, first := range p.tokens {
			switch d := n - first; {
			case d == 0:
				return fmt.Sprintf("<token%d>", i+1)
			case d >= -9 && d <= 9:
				return fmt.Sprintf("<token%d%+d>", i+1, d)
			}
		}
		p.tokens = append(p.tokens, n)
		return fmt.Sprintf("<token%d>", len(p.tokens))
	}
	return s
}

// sorted is for requests that are sent at the same time.
func sorted(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}

// verdict names the kind of an error, whose text may have ids and times.
func verdict(err error) string {
	for _, kind := range []error{repo.ErrOutcomeUnknown, repo.ErrLockLost, repo.ErrLockExpired, repo.ErrReleased, repo.ErrLocked, repo.ErrConflict, repo.ErrExists, repo.ErrNotFound, repo.ErrStale, repo.ErrSchema} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return err.Error()
}
