package service

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/program"
)

// pythonFolder has the virtual environments of Python programs: of the home, or of this Service's tenant.
func (s *Service) pythonFolder() string {
	if name := s.whose(); name != "" {
		return filepath.Join(s.cfg.Home, "python", "tenants", name)
	}
	return filepath.Join(s.cfg.Home, "python")
}

// checkPackageIndex checks Config.PackageIndex.
func (c *Config) checkPackageIndex() error {
	e := &disdel.Error{Kind: disdel.Invalid, Op: "open service"}
	if c.PackageIndex == "" {
		return nil
	}
	if c.OpenWhisk.Host != "" {
		e.Msg = "a package index is of no use with another OpenWhisk: its actions have the packages of their image"
		e.Hint = "leave --package-index out, and make an image with disdel deploy image --python"
		return e
	}
	if strings.HasPrefix(c.PackageIndex, "https://") || strings.HasPrefix(c.PackageIndex, "http://") {
		return nil
	}
	if info, err := os.Stat(c.PackageIndex); err != nil || !info.IsDir() {
		e.Msg, e.Err = "the package index is no folder and no address: "+disdel.Redacted(c.PackageIndex), err
		e.Hint = "name a folder of wheels, or an address such as https://pypi.org/simple"
		return e
	}
	var err error
	c.PackageIndex, err = filepath.Abs(c.PackageIndex)
	return err
}

// InstallPackages makes a virtual environment for the text of a requirements.txt, unless there is one, and returns its
// name, which a job of the same tenant can name. It returns Denied without Config.PackageIndex, OverLimit if the disk
// quota has no room, and the errors of program.Packages.
func (s *Service) InstallPackages(ctx context.Context, requirements string) (name string, err error) {
	if s.cfg.PackageIndex == "" {
		return "", &disdel.Error{
			Kind: disdel.Denied, Op: "install packages", Msg: "this server installs no packages for its clients",
			Hint: "leave out model.python.requirements if the server's Python has the packages, or ask whoever runs the " +
				"server to start it with --package-index",
		}
	}
	return program.Packages{
		Requirements: requirements, Index: s.cfg.PackageIndex, Cache: s.pythonFolder(), Room: s.claimEnvironment,
	}.Install(ctx)
}

// claimEnvironment claims the room of a new environment: all that the tenant's disk quota has left.
func (s *Service) claimEnvironment(ctx context.Context) (most disdel.Bytes, release func(), err error) {
	most = program.MaxEnvironment
	q, err := s.quota(ctx)
	if err != nil {
		return 0, nil, err
	}
	if q.Disk > 0 {
		stored, err := s.stored(ctx)
		if err != nil {
			return 0, nil, err
		}
		claimed, done := s.disk.Add(0)
		done()
		most = max(1, min(most, q.Disk-stored-claimed))
	}
	release, err = s.ClaimDisk(ctx, most)
	return most, release, err
}

// Interpreter returns the Python of an environment that InstallPackages has made for the same tenant. It returns
// NotFound for another name.
func (s *Service) Interpreter(environment string) (path string, err error) {
	path = filepath.Join(s.pythonFolder(), "environments", environment, "bin", "python")
	if _, err = os.Stat(path); err != nil || !filepath.IsLocal(environment) || filepath.Base(environment) != environment {
		return "", &disdel.Error{
			Kind: disdel.NotFound, Op: "find packages", Msg: "the server no longer has the program's packages",
			Hint: "submit the job again, which installs them",
		}
	}
	return path, nil
}
