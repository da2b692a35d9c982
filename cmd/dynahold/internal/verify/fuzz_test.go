package verify_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/verify"
	"github.com/dynahold/dynahold/repo"
)

// Whatever a file has, it is refused or judged: records come from elsewhere.
func FuzzRead(f *testing.F) {
	image := `{"id":{"S":"a"},"version":{"N":"1"},"writers":{"B":"AQIDBAUGBwg="},"lockedBy":{"S":"x#y"},"lockTime":{"N":"17"},"once":{"BS":["AQIDBAUGBwgJCgsM"]},"onceEpoch":{"N":"3"}}`
	for _, seed := range []string{
		`{"Records":[{"eventName":"MODIFY","dynamodb":{"Keys":{"id":{"S":"a"}},"OldImage":` + image + `,"NewImage":` + image + `,"SequenceNumber":"1","ApproximateCreationDateTime":1.7e9}}]}`,
		`{"dynamodb":{"Keys":{"id":{"N":"1e400"}},"NewImage":{"id":{"N":"1"}},"ApproximateCreationDateTime":"2026-11-24T03:00:00Z"}}{"dropped":2}`,
		`{"call":"optimistic.Update","table":"t","verdict":"refused","writes":[{"table":"t","key":"00","id":"01"}]}`,
		`{"Records":[{"dynamodb":{"Keys":null,"NewImage":{"a":{"L":[{"NULL":true}]}},"ApproximateCreationDateTime":-9e99}}]}`,
		"", "[]", `{"Records":{}}`, `{"dynamodb":7}`,
	} {
		f.Add(seed)
	}
	keys, err := repo.NewKeyTable(dynamodb.New(dynamodb.Options{}), "orders", repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}, repo.TableConfig{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := verify.Read(strings.NewReader(text), "fuzz")
		if err != nil {
			return
		}
		report, writes := verify.Check(keys, verify.Config{Version: "version"}, in.Changes)
		writes.Calls(report, in.Calls)
		if report.Changes > len(in.Changes) || report.Calls != len(in.Calls) {
			t.Errorf("%d changes and %d calls became %d and %d", len(in.Changes), len(in.Calls), report.Changes, report.Calls)
		}
	})
}
