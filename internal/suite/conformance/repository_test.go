package conformance_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/suite"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

// Every strategy, in every mode, passes what users run over what they build around one.
func TestStrategiesPassTheSuiteOfUsers(t *testing.T) {
	suite.EachStrategy(t, func(t *testing.T, w *suite.Fixture, s suite.Strategy) {
		t.Parallel()
		repotest.Run(t, repotest.Suite[suite.Account]{
			Open: func(tb testing.TB, client *dynamodb.Client) repo.Repository[suite.Account] {
				return s.Open(tb, w, client)
			},
			New:    func(id string) suite.Account { return suite.Account{ID: id, Seq: 1, At: 1} },
			Key:    func(a suite.Account) repo.Key { return repo.Key{Partition: a.ID, Sort: a.Seq} },
			Add:    func(a *suite.Account) { a.Balance++; a.At++ },
			Count:  func(a suite.Account) int { return int(a.Balance) },
			Client: w.Client,
		})
	})
}
