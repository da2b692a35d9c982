package conformance_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

// Every strategy, in every mode, passes what users run over what they build around one.
func TestStrategiesPassTheSuiteOfUsers(t *testing.T) {
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		t.Parallel()
		repotest.Run(t, repotest.Suite[fixture.Account]{
			Open: func(tb testing.TB, client *dynamodb.Client) repo.Repository[fixture.Account] {
				return s.Open(tb, w, client)
			},
			New:    func(id string) fixture.Account { return fixture.Account{ID: id, Seq: 1, At: 1} },
			Key:    func(a fixture.Account) repo.Key { return repo.Key{Partition: a.ID, Sort: a.Seq} },
			Add:    func(a *fixture.Account) { a.Balance++; a.At++ },
			Count:  func(a fixture.Account) int { return int(a.Balance) },
			Client: w.Client,
		})
	})
}
