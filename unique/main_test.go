package unique_test

import (
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
