package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/unique"
)

type uniqueCommands struct {
	List   uniqueListCommand   `cmd:"" help:"List the claims in a table: which item has which unique attribute for itself."`
	Check  uniqueCheckCommand  `cmd:"" help:"Say which items have a value without its claim, or one that is another's, and which claims have no item."`
	Repair uniqueRepairCommand `cmd:"" aliases:"claim" help:"Claim what items have, and remove claims without an item."`
}

// ofFlags say what is unique, as the tags of the program's type do.
type ofFlags struct {
	tableFlags
	Of              []string          `required:"" sep:"none" placeholder:"NAME[=ATTRIBUTE,ATTRIBUTE]" help:"What is unique: an attribute, or the name of several together. May be repeated."`
	Type            map[string]string `placeholder:"ATTRIBUTE=NAME" help:"The attribute that names an item's type, and the type, where its tag has type=NAME."`
	PartitionPrefix string            `placeholder:"TEXT" help:"Prefix of the type's partition keys, where its tag has one."`
	SortPrefix      string            `placeholder:"TEXT" help:"Prefix of its sort keys."`
}

// AfterApply refuses several types, and attributes without a name.
func (f *ofFlags) AfterApply() error {
	if len(f.Type) > 1 {
		return fmt.Errorf("--type was given %d times: claims of one type are looked after at a time", len(f.Type))
	}
	for name, attributes := range f.of().Attributes {
		if name == "" || slices.Contains(attributes, "") {
			return fmt.Errorf("--of %s: give an attribute, or NAME=ATTRIBUTE,ATTRIBUTE", strings.Join(f.Of, " --of "))
		}
	}
	return nil
}

// of is what the flags say.
func (f *ofFlags) of() repo.UniqueOf {
	u := repo.UniqueOf{Attributes: map[string][]string{}, PartitionPrefix: f.PartitionPrefix, SortPrefix: f.SortPrefix}
	for _, given := range f.Of {
		name, attributes, several := strings.Cut(given, "=")
		if !several {
			attributes = name
		}
		u.Attributes[name] = strings.Split(attributes, ",")
	}
	for attribute, name := range f.Type {
		u.Type, u.TypeName = attribute, name
	}
	return u
}

// claims are those of a table.
func (f *tableFlags) claims(ctx context.Context, of repo.UniqueOf) (*opened, *unique.Claims, error) {
	t, err := f.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if of.SortPrefix != "" && t.schema.Sort.Name == "" {
		return nil, nil, usage("--sort-prefix: table %q has no sort key", f.Table)
	}
	keys, err := t.keys()
	if err != nil {
		return nil, nil, err
	}
	if keys, err = keys.WithUnique(of); err != nil {
		return nil, nil, err
	}
	return t, unique.In(keys), nil
}

type claimDocument struct {
	Field     string `json:"field"` // with the type's name, or its keys' prefixes, before it
	Partition string `json:"partition"`
	Sort      string `json:"sort,omitempty"`
}

func claimDocumentOf(c unique.Claim) claimDocument {
	return claimDocument{c.Field, keyText(c.Key.Partition), keyText(c.Key.Sort)}
}

type uniqueListCommand struct{ tableFlags }

// Run implements the command.
func (cmd *uniqueListCommand) Run(ctx context.Context, c *console) error {
	_, claims, err := cmd.claims(ctx, repo.UniqueOf{})
	if err != nil {
		return err
	}
	list, rows := []claimDocument{}, [][]string(nil)
	unread := collect(claims.List(ctx), func(claim unique.Claim) {
		d := claimDocumentOf(claim)
		list, rows = append(list, d), append(rows, []string{d.Field, keyWords(claim.Key)})
	})
	return c.printList(cmd.Output, list, []string{"unique", "item"}, rows, "no claim is in table "+cmd.Table, unread)
}

type findingDocument struct {
	claimDocument
	State string         `json:"state"`           // missing, double, orphan
	Owner *claimDocument `json:"owner,omitempty"` // of a double: the other item, which has the claim
	Done  bool           `json:"mended"`
}

// found are the words for what is wrong.
var found = map[unique.State]string{
	unique.Missing: "has no claim",
	unique.Double:  "has the value of another item",
	unique.Orphan:  "has a claim, and not the value",
}

// findings prints what is wrong, and ends with exitFound where something of that is left.
func (f *ofFlags) findings(c *console, list []findingDocument, rows [][]string, left int, unread error) error {
	err := c.printList(f.Output, list, []string{"unique", "item", "finding", "owner", "mended"}, rows, "nothing is wrong with the claims of "+strings.Join(f.Of, ", "), unread)
	if done := len(list) - left; err != nil && done > 0 {
		return doneBut("mended", fmt.Sprint(done), "not everything could be read or printed", err)
	}
	if err != nil || left == 0 {
		return err
	}
	return outcome{exitFound, fmt.Errorf("claims that are not right: %d", left)}
}

// read walks over all claims and items.
func (f *ofFlags) read(ctx context.Context, c *console, t *opened, claims *unique.Claims, mend bool) error {
	walk := claims.Check
	if mend {
		walk = claims.Repair
	}
	list, rows, left := []findingDocument{}, [][]string(nil), 0
	unread := collect(walk(ctx), func(x unique.Finding) {
		d, owner, mended := findingDocument{claimDocumentOf(x.Claim), string(x.State), nil, x.Done}, "", "no"
		if x.State == unique.Double {
			other := claimDocumentOf(unique.Claim{Field: x.Field, Key: x.Owner})
			d.Owner, owner = &other, keyWords(x.Owner)
		}
		if x.Done {
			mended = "yes"
		} else {
			left++
		}
		list, rows = append(list, d), append(rows, []string{d.Field, keyWords(x.Key), found[x.State], owner, mended})
	})
	if !mend && len(list) == 0 && unread == nil {
		unread = f.misspelt(ctx, t)
	}
	return f.findings(c, list, rows, left, unread)
}

// misspelt refuses to call right what no item has: an attribute, a type or a prefix that is
// misspelt has nothing wrong with it, and by it every claim is one without an item, which is
// not to be removed. A table without items has nothing else.
func (f *ofFlags) misspelt(ctx context.Context, t *opened) error {
	of := f.of()
	for _, name := range slices.Sorted(maps.Keys(of.Attributes)) {
		fits, err := t.hasItem(ctx, fitting(of, of.Attributes[name], t.schema)...)
		if err != nil {
			return err
		}
		if fits {
			continue
		}
		if some, err := t.hasItem(ctx); err != nil || !some {
			return err
		}
		return outcome{exitNothing, fmt.Errorf("no item of table %q has what --of %s names (with --type and prefixes, if given): nothing was compared or changed", t.name, name)}
	}
	return nil
}

// fitting are the conditions that make an item one of those whose attributes are unique together.
func fitting(of repo.UniqueOf, attributes []string, keys repo.KeySchema) (all []expression.ConditionBuilder) {
	for _, attribute := range attributes {
		all = append(all, expression.NameNoDotSplit(attribute).AttributeExists())
	}
	if of.Type != "" {
		all = append(all, expression.NameNoDotSplit(of.Type).Equal(expression.Value(of.TypeName)))
	}
	if of.PartitionPrefix != "" {
		all = append(all, expression.NameNoDotSplit(keys.Partition.Name).BeginsWith(of.PartitionPrefix))
	}
	if of.SortPrefix != "" {
		all = append(all, expression.NameNoDotSplit(keys.Sort.Name).BeginsWith(of.SortPrefix))
	}
	return all
}

// claimAttribute is what the rows of claims have, and no item.
const claimAttribute = "uniqueClaim"

// hasItem reports whether an item meets all conditions. Claims are none.
func (t *opened) hasItem(ctx context.Context, conditions ...expression.ConditionBuilder) (bool, error) {
	all := expression.Name(claimAttribute).AttributeNotExists()
	for _, condition := range conditions {
		all = all.And(condition)
	}
	expr, err := expression.NewBuilder().WithFilter(all).Build()
	if err != nil {
		return false, err
	}
	in := &dynamodb.ScanInput{TableName: &t.name, FilterExpression: expr.Filter(), ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values()}
	return t.scanFor(ctx, in, func(map[string]types.AttributeValue) bool { return true })
}

type uniqueCheckCommand struct{ ofFlags }

// Help says what it reads.
func (uniqueCheckCommand) Help() string {
	return `Compares the items of a table with their claims, as package unique does, and writes nothing. It may run beside writers; it scans the table, and reads the claim of each item and the item of each claim.

Exit codes: 0 nothing is wrong; 1 failed; 2 usage; 3 there is no table, or no item has what is named; 5 something is wrong.`
}

// Run implements the command.
func (cmd *uniqueCheckCommand) Run(ctx context.Context, c *console) error {
	t, claims, err := cmd.claims(ctx, cmd.of())
	if err != nil {
		return err
	}
	return cmd.read(ctx, c, t, claims, false)
}

type uniqueRepairCommand struct {
	ofFlags
	consent
}

// Help says what it writes.
func (uniqueRepairCommand) Help() string {
	return `Claims what items have without a claim, as when the tag repo:"unique" is new to a table that has items, and removes claims that name items without the value; a transaction for each. It may run beside writers, and again. Roll the programs with the tag out first, and give --of as their tags have it: claims that others have made by another rule count as claims without an item. Of two items with one value it tells only: change one of them.

Exit codes: 0 all is right now; 1 failed, or not agreed to; 2 usage; 3 there is no table, or no item has what is named; 5 something is left, such as two items with one value.`
}

// Run implements the command.
func (cmd *uniqueRepairCommand) Run(ctx context.Context, c *console) error {
	t, claims, err := cmd.claims(ctx, cmd.of())
	if err == nil {
		err = t.carried(ctx)
	}
	if err == nil {
		err = cmd.misspelt(ctx, t)
	}
	if err != nil {
		return err
	}
	if !cmd.Yes { // who is asked is told what would be done
		count := map[unique.State]int{}
		if err := collect(claims.Check(ctx), func(x unique.Finding) { count[x.State]++ }); err != nil {
			return err
		}
		facts := [][2]string{{"table", cmd.Table}, {"unique", strings.Join(cmd.Of, "; ")}, {"items without their claim", fmt.Sprint(count[unique.Missing])},
			{"claims without their item", fmt.Sprint(count[unique.Orphan])}, {"doubles, which stay", fmt.Sprint(count[unique.Double])}}
		if err := c.confirm(ctx, false, facts, "Claim what items have, and remove claims without an item?"); err != nil {
			return err
		}
	}
	return cmd.read(ctx, c, t, claims, true)
}
