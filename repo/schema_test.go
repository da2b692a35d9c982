package repo_test

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

func define[T any](cfg repo.TableConfig) error {
	return repo.Define(reflect.TypeFor[T](), dynamodb.New(dynamodb.Options{Region: "x"}), cfg)
}

type (
	keyed struct {
		ID string `dynamodbav:"id" repo:"pk"`
	}
	versioned struct {
		Version int `dynamodbav:"v" repo:"version"`
	}
	nested struct {
		Inner string `dynamodbav:"inner" repo:"sk"`
	}
	textID string
)

func TestDefinitionsThatWork(t *testing.T) {
	for name, err := range map[string]error{
		"string key": define[keyed](repo.TableConfig{}),
		"number keys": define[struct {
			P int     `repo:"pk"`
			S float64 `repo:"sk"`
		}](repo.TableConfig{}),
		"byte keys": define[struct {
			P []byte   `repo:"pk"`
			S [16]byte `repo:"sk"`
		}](repo.TableConfig{}),
		"named string": define[struct {
			P textID `repo:"pk"`
		}](repo.TableConfig{}),
		"embedded": define[struct {
			keyed
			versioned
			Data map[string]string
		}](repo.TableConfig{}),
		"embedded pointer without roles": define[struct {
			keyed
			*Extra
		}](repo.TableConfig{}),
		"shadowed field": define[struct {
			keyed
			Extra
			More string `dynamodbav:"more"`
		}](repo.TableConfig{}),
		"unix time": define[struct {
			keyed
			At time.Time `dynamodbav:"at,unixtime" repo:"eventtime"`
			By string    `repo:"eventid"`
		}](repo.TableConfig{}),
		"UnixTime": define[struct {
			keyed
			At attributevalue.UnixTime `repo:"eventtime"`
		}](repo.TableConfig{}),
		"all roles": define[struct {
			ID   string    `repo:"pk,prefix=A#"`
			Kind textID    `repo:"type=thing, with a comma"`
			At   time.Time `repo:"created"`
			On   uint64    `repo:"updated,unit=ms"`
		}](repo.TableConfig{}),
		"times": define[struct {
			keyed
			At time.Time               `dynamodbav:"at,unixtime" repo:"created"`
			On attributevalue.UnixTime `repo:"updated"`
		}](repo.TableConfig{}),
		"own TTL": define[struct {
			keyed
			Ends int64 `dynamodbav:"expiresAt,omitempty"`
		}](repo.TableConfig{}),
		"a time as own TTL": define[struct {
			keyed
			Ends *time.Time `dynamodbav:"expiresAt,unixtime"`
		}](repo.TableConfig{}),
		"a key of whole seconds": define[struct {
			P attributevalue.UnixTime `repo:"pk"`
		}](repo.TableConfig{}),
		"a key of times that sort": define[struct {
			P time.Time `repo:"pk"`
		}](repo.TableConfig{EncoderOptions: func(o *attributevalue.EncoderOptions) {
			o.EncodeTime = func(at time.Time) (types.AttributeValue, error) {
				return &types.AttributeValueMemberS{Value: at.UTC().Format("2006-01-02T15:04:05.000")}, nil
			}
		}}),
		"what is read back": define[struct {
			keyed
			Any   map[string]any
			Keys  map[netip.Addr]map[bool]map[uint8]map[textID]map[time.Time]float32
			Loop  *loop
			Mutex sync.Mutex `dynamodbav:"-"`
			Own   []cents
			Empty map[string]struct{}
		}](repo.TableConfig{}),
		"what is a text by its methods": define[struct {
			keyed
			Price big.Int
		}](repo.TableConfig{
			EncoderOptions: func(o *attributevalue.EncoderOptions) { o.UseEncodingMarshalers = true },
			DecoderOptions: func(o *attributevalue.DecoderOptions) { o.UseEncodingUnmarshalers = true },
		}),
		"renamed": define[struct {
			keyed
			LockedBy string `dynamodbav:"lockedBy"`
		}](repo.TableConfig{Attributes: repo.Attributes{LockedBy: "dh_by"}}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type loop struct {
	Next  *loop
	Loops []map[string]loop
}

// Extra is embedded in definitions.
type Extra struct {
	More string `dynamodbav:"more"`
}

func TestWrongDefinitionsSayHowToMendThem(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"not a struct":   {define[map[string]any](repo.TableConfig{}), "use the struct itself"},
		"pointer":        {define[*keyed](repo.TableConfig{}), "use the struct itself"},
		"interface":      {define[any](repo.TableConfig{}), "use the struct itself"},
		"no pk":          {define[struct{ ID string }](repo.TableConfig{}), "add the tag `repo:\"pk\"`"},
		"two pk":         {define[struct{ A, B string }](repo.TableConfig{}), "add the tag"},
		"two pk, tagged": {define[twoKeys](repo.TableConfig{}), "both have the role \"pk\""},
		"pk of a wrong type": {define[struct {
			P bool `repo:"pk"`
		}](repo.TableConfig{}), "must be a string, a number or bytes"},
		"pk pointer": {define[struct {
			P *string `repo:"pk"`
		}](repo.TableConfig{}), "a pointer may be nil"},
		"pk struct": {define[struct {
			P struct{ X int } `repo:"pk"`
		}](repo.TableConfig{}), "must be a string, a number or bytes"},
		"pk as text": {define[struct {
			P int `dynamodbav:"p,string" repo:"pk"`
		}](repo.TableConfig{}), "not supported there"},
		"version text": {define[struct {
			keyed
			V string `repo:"version"`
		}](repo.TableConfig{}), "use an integer"},
		"version float": {define[struct {
			keyed
			V float64 `repo:"version"`
		}](repo.TableConfig{}), "use an integer"},
		"event time as RFC 3339": {define[struct {
			keyed
			At time.Time `dynamodbav:"at" repo:"eventtime"`
		}](repo.TableConfig{}), "`dynamodbav:\"at,unixtime\"`"},
		"event time as float": {define[struct {
			keyed
			At float64 `repo:"eventtime"`
		}](repo.TableConfig{}), "floats do not sort reliably"},
		"event id without time": {define[struct {
			keyed
			By string `repo:"eventid"`
		}](repo.TableConfig{}), "no field has repo:\"eventtime\""},
		"event id bool": {define[struct {
			keyed
			At int  `repo:"eventtime"`
			By bool `repo:"eventid"`
		}](repo.TableConfig{}), "use a string or an integer"},
		"type without a name": {define[struct {
			keyed
			K string `repo:"type="`
		}](repo.TableConfig{}), "repo:\"type=invoice\""},
		"type without anything": {define[struct {
			keyed
			K string `repo:"type"`
		}](repo.TableConfig{}), "the roles are"},
		"type of a number": {define[struct {
			keyed
			K int `repo:"type=x"`
		}](repo.TableConfig{}), "use a string"},
		"two types": {define[struct {
			keyed
			K string `repo:"type=x"`
			L string `repo:"type=y"`
		}](repo.TableConfig{}), "both have the role \"type\""},
		"prefix of a number": {define[struct {
			ID int `repo:"pk,prefix=A"`
		}](repo.TableConfig{}), "only texts can have one"},
		"empty prefix": {define[struct {
			ID string `repo:"pk,prefix="`
		}](repo.TableConfig{}), "prefix is empty"},
		"prefix of no key": {define[struct {
			keyed
			V int `repo:"version,prefix=A"`
		}](repo.TableConfig{}), "unknown option"},
		"unit of another kind": {define[struct {
			keyed
			At int64 `repo:"created,unit=h"`
		}](repo.TableConfig{}), "s, ms, us and ns"},
		"unit of a time": {define[struct {
			keyed
			At time.Time `repo:"created,unit=ms"`
		}](repo.TableConfig{}), "leave out the option unit"},
		"stamp of 32 bits": {define[struct {
			keyed
			At int32 `repo:"updated"`
		}](repo.TableConfig{}), "an integer of 64 bits"},
		"stamp that may be nil": {define[struct {
			keyed
			At *time.Time `repo:"updated"`
		}](repo.TableConfig{}), "use time.Time"},
		"stamp as text": {define[struct {
			keyed
			At int64 `dynamodbav:"at,string" repo:"updated"`
		}](repo.TableConfig{}), "an integer of 64 bits"},
		"role with a typo": {define[struct {
			ID string `repo:"pkk"`
		}](repo.TableConfig{}), "the roles are pk, sk"},
		"tag with a typo": {define[struct {
			keyed
			V int `dynamodbva:"v"`
		}](repo.TableConfig{}), "did you mean"},
		"tag with a typo in repo": {define[struct {
			keyed
			V int `rep:"version"`
		}](repo.TableConfig{}), "did you mean"},
		"role on an unexported field": {define[struct {
			id string `repo:"pk"` // never set: it is the point
		}](repo.TableConfig{}), "export it"},
		"role on a field that is not stored": {define[struct {
			ID string `dynamodbav:"-" repo:"pk"`
		}](repo.TableConfig{}), "not stored"},
		"collision": {define[struct {
			keyed
			By string `dynamodbav:"lockedBy"`
		}](repo.TableConfig{}), "TableConfig.Attributes.LockedBy"},
		"key named as the TTL": {define[struct {
			ID string `dynamodbav:"expiresAt" repo:"pk"`
		}](repo.TableConfig{}), "TableConfig.Attributes.TTL"},
		"a time as the TTL": {define[struct {
			keyed
			Ends time.Time `dynamodbav:"expiresAt"`
		}](repo.TableConfig{}), "`dynamodbav:\"expiresAt,unixtime\"`"},
		"a text as the TTL": {define[struct {
			keyed
			Ends int `dynamodbav:"ends,string"`
		}](repo.TableConfig{Attributes: repo.Attributes{TTL: "ends"}}), "TableConfig.Attributes.TTL"},
		"a time as sort key": {define[struct {
			keyed
			At time.Time `repo:"sk"`
		}](repo.TableConfig{}), "attributevalue.UnixTime"},
		"one attribute twice": {define[struct {
			keyed
			A int `dynamodbav:"x"`
			B int `dynamodbav:"x"`
		}](repo.TableConfig{}), "both map attribute \"x\""},
		"role in a nested struct": {define[struct {
			keyed
			In nested `dynamodbav:"in"`
		}](repo.TableConfig{}), "embed the struct without a dynamodbav name"},
		"embedded under a name": {define[struct {
			keyed `dynamodbav:"k"`
		}](repo.TableConfig{}), ""},
		"role behind an embedded pointer": {define[struct {
			keyed
			*Versions
		}](repo.TableConfig{}), "embed the struct itself"},
		"role on an embedded struct": {define[struct {
			Versions `repo:"version"`
		}](repo.TableConfig{}), "give it to a field inside"},
		"role that is hidden": {define[struct {
			keyed
			Other string `dynamodbav:"id"`
		}](repo.TableConfig{}), "is hidden by field Other"},
		"an error":              {define[keeps[error]](repo.TableConfig{}), "field V of type error: it would not be read back"},
		"interfaces in a map":   {define[keeps[map[string]fmt.Stringer]](repo.TableConfig{}), "to the interface fmt.Stringer nothing"},
		"a channel":             {define[keeps[*chan int]](repo.TableConfig{}), "a chan is not stored"},
		"a function far within": {define[keeps[[]struct{ Do func() }]](repo.TableConfig{}), "field Do of type func(): "},
		"a complex number":      {define[keeps[complex64]](repo.TableConfig{}), "a complex64 is not stored"},
		"keys by their names":   {define[keeps[map[time.Duration]int]](repo.TableConfig{}), "a key that is a time.Duration"},
		"keys that are others":  {define[keeps[map[colour]int]](repo.TableConfig{}), "a key that is a repo_test.colour"},
		"keys that are structs": {define[keeps[[2]map[nested]int]](repo.TableConfig{}), "a key that is a repo_test.nested"},
		"a number without form": {define[keeps[*big.Int]](repo.TableConfig{}), "big.Int has no exported fields, and is stored as an empty map"},
		"one attribute twice, far within": {define[keeps[[]struct {
			A int `dynamodbav:"x"`
			B int `dynamodbav:"x"`
		}]](repo.TableConfig{}), "both map attribute \"x\""},
		"a pointer far within that is not decoded": {define[keeps[[]struct{ *nested }]](repo.TableConfig{}), "embedded pointer to the unexported struct nested"},
	} {
		if !errors.Is(c.err, repo.ErrSchema) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v; want ErrSchema and a sentence with %q", name, c.err, c.says)
		}
	}
}

// keeps has a field of any type.
type keeps[V any] struct {
	keyed
	V V
}

type twoKeys struct {
	A string `repo:"pk"`
	B string `repo:"pk"`
}

// Versions is embedded in definitions.
type Versions struct {
	V int `repo:"version"`
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	var none *dynamodb.Client
	client := dynamodb.New(dynamodb.Options{Region: "x"})
	for name, err := range map[string]error{
		"nil client":       second(repo.NewTable[keyed](nil, "table", repo.TableConfig{})),
		"nil *client":      second(repo.NewTable[keyed](none, "table", repo.TableConfig{})),
		"short name":       second(repo.NewTable[keyed](client, "t", repo.TableConfig{})),
		"name with spaces": second(repo.NewTable[keyed](client, "my table", repo.TableConfig{})),
		"no name":          second(repo.NewTable[keyed](client, "", repo.TableConfig{})),
		"negative timeout": define[keyed](repo.TableConfig{AttemptTimeout: -1}),
		"no unit":          define[keyed](repo.TableConfig{AttemptTimeout: 10}),
		"one name twice":   define[keyed](repo.TableConfig{Attributes: repo.Attributes{LockedBy: "x", LockTime: "x"}}),
		"a default's name": define[keyed](repo.TableConfig{Attributes: repo.Attributes{Writers: "tombstone"}}),
		"not UTF-8":        define[keyed](repo.TableConfig{Attributes: repo.Attributes{TTL: "\xff"}}),
		"too long":         define[keyed](repo.TableConfig{Attributes: repo.Attributes{TTL: strings.Repeat("x", 256)}}),
	} {
		if !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}

func second[A any](_ A, err error) error { return err }
