package localdb

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// version of the engine that is fetched. With a new one, the sums below change.
const version = "1.2.1"

// A release is the engine's build for one platform, as published on npm.
type release struct {
	platform string // as npm names it
	binary   string // the one file that is taken out of the tarball

	// SHA-512 of the tarball in base64, as npm prints it, and of the binary
	// in hexadecimal. Empty where not known.
	tarballSum string
	binarySum  string
}

// releases by GOOS/GOARCH. A pinned sum is added when somebody has fetched and
// compared the package on that platform.
var releases = map[string]release{
	"linux/amd64": {
		platform:   "linux-x64",
		binary:     "dynoxide",
		tarballSum: "sBHqlxJ9ANkLluFkYRfd5r8Y0ApFew4FhOrlhgRAgD4XzEoFOukEo1nuBTQ1+jTtofqwn4NWQ2k0Tn5mNTjgUg==",
		binarySum: "d8634dc6fda189275dac297fdb8c8d0297d25dde196cd09d30b60f519eadd0c6" +
			"d307975e54b2ae2f8fbe3386c2070ff17063337b7e88a7755750a298d66a476c",
	},
	"linux/arm64":   {platform: "linux-arm64", binary: "dynoxide"},
	"darwin/amd64":  {platform: "darwin-x64", binary: "dynoxide"},
	"darwin/arm64":  {platform: "darwin-arm64", binary: "dynoxide"},
	"windows/amd64": {platform: "win32-x64", binary: "dynoxide.exe"},
}

func currentRelease() (release, error) {
	name := runtime.GOOS + "/" + runtime.GOARCH
	r, ok := releases[name]
	if !ok {
		return release{}, fmt.Errorf("dynoxide is not published for %s", name)
	}
	return r, nil
}

// spec is what npm is asked for.
func (r release) spec() string { return "@dynoxide/" + r.platform + "@" + version }

// folderName is that of the unpacked release in the cache. It has the version in it, so that
// programs built against different versions share one cache folder.
func (r release) folderName() string { return "dynoxide-" + version + "-" + r.platform }

func (r release) folder(cacheDir string) string { return filepath.Join(cacheDir, r.folderName()) }

func (r release) path(cacheDir string) string { return filepath.Join(r.folder(cacheDir), r.binary) }

// sumName is the file in which the sum of a binary without a pinned one is noted.
func (r release) sumName() string { return r.binary + ".sha512" }

// expectedSum is what the binary in the cache must hash to: the pinned sum, or
// the one noted when it was unpacked.
func (r release) expectedSum(folder *os.Root) (string, error) {
	if r.binarySum != "" {
		return r.binarySum, nil
	}
	f, _, err := openOwned(folder, r.sumName())
	if err != nil {
		return "", err
	}
	defer f.Close()
	noted, err := readBounded(f, maxSum)
	return strings.TrimSpace(string(noted)), err
}
