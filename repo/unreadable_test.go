package repo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

// A key that DynamoDB does not keep is the caller's mistake.
func TestNumbersThatCannotBeKeys(t *testing.T) {
	table := mustTable[struct {
		N attributevalue.Number `dynamodbav:"n" repo:"pk"`
	}](t)
	nines := strings.Repeat("9", 38)
	for number, ok := range map[string]bool{
		nines: true, "-" + nines: true, "0." + nines: true, nines + strings.Repeat("0", 88): true, "1e125": true, "-1e-130": true, "0": true, "0e500": true, "00.10": true, "+1": true,
		nines + "9": false, "-" + nines + "9": false, "1." + nines: false, "1e126": false, "1e-131": false, nines + "e90": false,
		"0x10": false, "1_000": false, "inf": false, "NaN": false, "": false, "one": false, "1e": false, "1e99999999999999999999": false, "1 1": false,
	} {
		_, err := table.EncodeKey(repo.Key{Partition: attributevalue.Number(number)})
		if refused := errors.Is(err, repo.ErrKey); refused == ok || !refused && err != nil {
			t.Errorf("%q: %v", number, err)
		}
	}
	for _, n := range []any{uint64(1 << 63), 1e125, -1e-130, 0.1 + 0.2} {
		if _, err := table.EncodeKey(repo.Key{Partition: n}); err != nil {
			t.Errorf("%v: %v", n, err)
		}
	}
}

// A secret is not what settings print.
func TestSettingsArePrintedWithoutTheSecret(t *testing.T) {
	cfg := repo.TableConfig{PageSecret: []byte("hush"), AllowReplicas: true, Attributes: repo.Attributes{Once: "ids"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{cfg, &cfg, struct{ Table repo.TableConfig }{cfg}, []repo.TableConfig{cfg}} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "hush") || strings.Contains(text, "104") || strings.Contains(text, "0x68") || strings.Contains(text, "68757368") {
				t.Errorf("%s: %s", verb, text)
			}
		}
	}
	if text := cfg.LogValue().String(); text != fmt.Sprint(cfg) || !strings.Contains(text, "PageSecret:set") || !strings.Contains(text, "AllowReplicas:true") || !strings.Contains(text, "Once:ids") {
		t.Error(text)
	}
}

func TestImagesThatAreNoneTellNoValues(t *testing.T) {
	for _, bad := range []string{`{"a": hush}`, `{"a": {"hush": 1}}`, `{"a": {"B": "hush!"}}`, `["hush"]`, `"hush"`, `{"a": "hush"}`, `{"a":{"N":{"hush":1}}}`} {
		if _, err := repo.ParseImage([]byte(bad)); !errors.Is(err, repo.ErrSchema) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// An item is told by its key, as the type has it.
func TestAnItemThatCannotBeReadIsToldByItsKey(t *testing.T) {
	table := mustTable[struct {
		ID string `dynamodbav:"id" repo:"pk,prefix=ORDER#"`
		N  int    `dynamodbav:"n"`
	}](t)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	_, err := table.Decode(map[string]types.AttributeValue{"id": text("ORDER#7"), "n": text("hush")})
	var item *repo.ItemError
	if !errors.As(err, &item) || item.Key.Partition != "7" || item.Table != table.Name() {
		t.Errorf("%v", err)
	}
	want := `item {"7"} in table "table": schema mismatch: attribute "n" (S) does not fit field N (int) of struct { ID string "dynamodbav:\"id\" repo:\"pk,prefix=ORDER#\""; N int "dynamodbav:\"n\"" }`
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
