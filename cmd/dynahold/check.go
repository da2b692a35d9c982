package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/repo"
)

type tableCheckCommand struct {
	tableFlags
	Sample int `default:"1000" help:"How many items are looked at, at most."`
}

// Help says what is read, and what the answer means.
func (tableCheckCommand) Help() string {
	return `Before programs with the library use a table that has items already: looks at a sample of them, by a Scan with eventually consistent reads (half a read unit per 4 KB), for attributes with names of the library's. Those of another type or shape than the library's collide: every call on such an item is refused (ErrSchema). Those that fit may be the library's own, or look like them by chance. Rows of cirello.io/dynamolock and of AWS's lock client for Java count as colliding: they and the library's locks do not keep each other out. Nothing is written.

Exit codes: 0 no collision in the sample; 1 failed; 2 usage; 3 no such table; 5 something collides.`
}

type checkDocument struct {
	Table      string             `json:"table"`
	Items      int                `json:"items_checked"`
	All        bool               `json:"all_items"` // the whole table was looked at
	Attributes []checkedAttribute `json:"attributes"`
	Collisions int                `json:"collisions"` // attributes that collide
}

// checkedAttribute is an attribute that was found under a name of the library's.
type checkedAttribute struct {
	Name    string `json:"attribute"`
	Role    string `json:"role"`
	Items   int    `json:"items"`   // that have it
	Foreign int    `json:"foreign"` // of them, those where it is not the library's
	Example string `json:"example,omitempty"`
	Why     string `json:"why,omitempty"`
	Mend    string `json:"mend,omitempty"`
}

// collide notes that an attribute is not the library's.
func (a *checkedAttribute) collide(key, why string) {
	if a.Foreign++; a.Foreign == 1 {
		a.Example, a.Why = key, why
		a.Mend = fmt.Sprintf("set TableConfig.Attributes.%s to another name in all programs", a.Role)
	}
}

// Run implements the command.
func (cmd *tableCheckCommand) Run(ctx context.Context, c *console) error {
	if cmd.Sample < 1 {
		return usage("--sample must be at least 1, not %d", cmd.Sample)
	}
	t, err := cmd.open(ctx)
	if err != nil {
		return err
	}
	keys, err := t.keys()
	if errors.Is(err, repo.ErrConfig) {
		return outcome{exitFound, err} // a key of the table, or a name that was given: the text says which
	}
	if err != nil {
		return err
	}
	d := checkDocument{Table: cmd.Table}
	found := map[string]*checkedAttribute{}
	if err := t.sample(ctx, cmd.Sample, &d, func(item map[string]types.AttributeValue) { checkItem(keys, item, found) }); err != nil {
		return err
	}
	ttl, err := t.ttl(ctx)
	if err != nil {
		return err
	}
	if ttl != "" && keys.Role(ttl) != "TTL" {
		found[ttl] = &checkedAttribute{Name: ttl, Role: "TTL", Foreign: 1, Why: "the table's TTL is on it, and the library's is on another attribute", Mend: "set TableConfig.Attributes.TTL to " + ttl}
	}
	d.Attributes = []checkedAttribute{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		d.Attributes = append(d.Attributes, *found[name])
		if found[name].Foreign > 0 {
			d.Collisions++
		}
	}
	if err := cmd.print(c, d); err != nil {
		return err
	}
	if d.Collisions > 0 {
		return outcome{exitFound, fmt.Errorf("attributes that collide with the library's: %d", d.Collisions)}
	}
	return nil
}

// sample reads items until there are enough or no more.
func (t *opened) sample(ctx context.Context, most int, d *checkDocument, look func(map[string]types.AttributeValue)) error {
	in := &dynamodb.ScanInput{TableName: &t.name}
	for {
		in.Limit = aws.Int32(int32(min(most-d.Items, 1000))) // at most 1000
		out, err := t.scan(ctx, in)
		if err != nil {
			return err
		}
		for _, item := range out.Items {
			look(item)
		}
		d.Items += len(out.Items)
		if d.All = len(out.LastEvaluatedKey) == 0; d.All || d.Items >= most {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// checkItem notes what an item has under the library's names.
func checkItem(keys *repo.KeyTable, item map[string]types.AttributeValue, found map[string]*checkedAttribute) {
	at := func(name string) *checkedAttribute {
		if found[name] == nil {
			found[name] = &checkedAttribute{Name: name, Role: keys.Role(name)}
		}
		return found[name]
	}
	key := keyWords(keys.DecodeKey(item))
	for name, v := range item {
		switch role := keys.Role(name); role {
		case "":
		case "TTL":
			at(name).Items++
			if _, number := v.(*types.AttributeValueMemberN); !number {
				at(name).collide(key, "it is no number: the library writes one there, and DynamoDB's TTL takes no other")
			}
		default:
			at(name).Items++
		}
	}
	for _, f := range keys.State(item).Foreign {
		at(f.Name).collide(key, f.Why)
	}
	if isOtherLock(item) {
		a := at("recordVersionNumber")
		a.Items++
		a.collide(key, "the row is a lock of cirello.io/dynamolock or of AWS's lock client for Java, which does not keep the library out, nor the library it")
		a.Mend = "use another table for the library's locks, and both for a while: docs/migration.md"
	}
}

// isOtherLock reports whether an item is a row of a lock client that is no party to the
// protocol, though no name in it is the library's.
func isOtherLock(item map[string]types.AttributeValue) bool {
	for _, name := range []string{"ownerName", "leaseDuration", "recordVersionNumber"} {
		if _, text := item[name].(*types.AttributeValueMemberS); !text {
			return false
		}
	}
	return true
}

func (cmd *tableCheckCommand) print(c *console, d checkDocument) error {
	if cmd.Output == "json" {
		return c.printJSON(d)
	}
	which := "the first"
	if d.All {
		which = "all"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Table %s, %s %d items: ", shown.Text(d.Table), which, d.Items)
	if len(d.Attributes) == 0 {
		b.WriteString("no attribute has a name of the library's\n")
		return c.print(b.String())
	}
	fmt.Fprintf(&b, "attributes with a name of the library's: %d, of them %d collide\n\n", len(d.Attributes), d.Collisions)
	var rows [][]string
	for _, a := range d.Attributes {
		verdict := "fits: the library's own, or alike by chance"
		if a.Foreign > 0 {
			verdict = "collides"
		}
		rows = append(rows, []string{a.Name, fmt.Sprint(a.Items), fmt.Sprint(a.Foreign), verdict})
	}
	b.WriteString(tableText([]string{"attribute", "items", "foreign", "verdict"}, rows))
	for _, a := range d.Attributes {
		if a.Foreign == 0 {
			continue
		}
		example := ""
		if a.Example != "" {
			example = ", for example in " + a.Example
		}
		fmt.Fprintf(&b, "\n%s%s: %s.\nMend: %s.\n", shown.Text(a.Name), example, a.Why, a.Mend)
	}
	return c.print(b.String())
}
