package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// A data folder holds a whole cluster of one agent. docs/formats/data-folder.md
// has its layout.
const (
	defaultFolder = "siltstone-data"

	stampName     = "FORMAT"
	stampTempName = stampName + ".new"
	databaseName  = "cluster.db"
	objectsName   = "objects"

	stampPrefix  = "siltstone data folder, format "
	folderFormat = 1
)

// checkFolderName refuses what would be the folder that one happens to be in.
func checkFolderName(dir string) error {
	if dir == "" {
		return usagef("--data names no folder")
	}
	return nil
}

// openFolder checks that a folder is a data folder of a format that this
// release reads, and makes it one where it is missing or empty and may be made.
func openFolder(dir string, mayCreate bool) error {
	stamp, err := os.ReadFile(filepath.Join(dir, stampName))
	switch {
	case err == nil:
		err := checkStamp(stamp)
		if errors.Is(err, errNoStamp) && isThere(dir, databaseName) {
			err = errLostStamp
		}
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case isThere(dir, databaseName):
		return errLostStamp
	case !mayCreate:
		return errors.New("there is no data in it: siltstone dev makes a data folder, --data names another")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	isOurs := func(e fs.DirEntry) bool { return e.Name() == stampTempName || e.Name() == "lost+found" }
	if foreign := slices.DeleteFunc(entries, isOurs); len(foreign) > 0 {
		return fmt.Errorf("it has other files (%s) and no %s: name an empty or new folder with --data", foreign[0].Name(), stampName)
	}
	return writeStamp(dir)
}

// errLostStamp is a folder with our stores and no stamp, or a damaged one.
var errLostStamp = fmt.Errorf("its %[1]s is missing or damaged, and %[2]s is there: if that is Siltstone's, write the line %[3]q into %[1]s",
	stampName, databaseName, stampPrefix+strconv.Itoa(folderFormat))

var errNoStamp = fmt.Errorf("its %s is not Siltstone's: name another folder with --data", stampName)

func isThere(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

func checkStamp(stamp []byte) error {
	digits, ours := strings.CutPrefix(string(bytes.TrimSpace(stamp)), stampPrefix)
	format, err := strconv.Atoi(digits)
	switch {
	case !ours || err != nil || format < 1:
		return errNoStamp
	case format > folderFormat:
		return fmt.Errorf("format %d, and this release reads up to %d: start the newer one", format, folderFormat)
	}
	return nil
}

// writeStamp stamps a new folder: whole or not at all, and for good.
func writeStamp(dir string) error {
	temp := filepath.Join(dir, stampTempName)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s%d\n", stampPrefix, folderFormat)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, stampName)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// explainFolder is one line for what a person can do something about.
func explainFolder(dir string, err error) error {
	var what string
	switch {
	case errors.Is(err, coordinator.ErrLocked):
		what = "another siltstone uses it: stop that one, or name another folder with --data"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = "the disk is full: free some space, or name a folder on another disk with --data"
	case errors.Is(err, syscall.EROFS):
		what = "the disk is read-only: name a folder that can be written with --data"
	case errors.Is(err, fs.ErrPermission):
		what = "no permission: run as the user that it belongs to, or name another folder with --data"
	case errors.Is(err, syscall.ENOTDIR):
		what = "it is not a folder: name another with --data"
	case errors.Is(err, siltstone.ErrNewerFormat):
		what = "a newer release has written there: start that one"
	case errors.Is(err, siltstone.ErrCorrupt):
		what = "it is damaged, docs/troubleshooting.md says what to do"
	default:
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	return fmt.Errorf("data folder %s: %s (%w)", dir, what, err)
}
