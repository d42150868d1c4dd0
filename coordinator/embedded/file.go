package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// The buckets at the top of the file.
var (
	metaBucket     = []byte("siltstone")
	ledgersBucket  = []byte("ledgers")
	floorsBucket   = []byte("floors")
	registerBucket = []byte("registers")

	topBuckets = [][]byte{metaBucket, ledgersBucket, floorsBucket, registerBucket}
)

// Keys of metaBucket.
var (
	formatKey = []byte("format")
	openedKey = []byte("opened")
)

const (
	formatVersion = 1
	// tombstoneLife is how long a deleted register is remembered at least.
	tombstoneLife = 24 * time.Hour
)

// openFile returns the file, which it makes where there is none, and the number
// of a transaction that is on disk.
func openFile(path string) (db *bbolt.DB, durable int, err error) {
	err = inspect(path)
	if err == nil {
		db, durable, err = openInspected(path)
	}
	if err != nil {
		return nil, 0, explain(path, err)
	}
	return db, durable, nil
}

// explain turns bbolt's errors at open into ours.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		err = coordinator.ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch):
		err = fmt.Errorf("it %w, or its beginning is damaged", siltstone.ErrForeign)
	case errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrIncompatibleValue):
		err = fmt.Errorf("%w: %w", siltstone.ErrCorrupt, err)
	}
	return fmt.Errorf("open coordinator %s: %w", path, err)
}

// inspect looks at a file, if there is one, before it is opened for writing:
// whether it is ours, and whole.
func inspect(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := openReadOnly(path)
	if err != nil {
		return err
	}
	return db.Close()
}

// errUnmade is a file that openFile would make a coordinator of.
var errUnmade = fmt.Errorf("there is none yet: %w", os.ErrNotExist)

// openForReading opens a file under a shared lock, and changes nothing in it.
func openForReading(path string) (db *bbolt.DB, err error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 && info.Mode().IsRegular() {
		err = errUnmade
	}
	if err == nil {
		db, err = openReadOnly(path)
	}
	if err != nil {
		return nil, explain(path, err)
	}
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			if tx.Bucket(metaBucket) == nil {
				return errUnmade
			}
			return nil
		})
	})
	if err != nil {
		return nil, explain(path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// unmadeTx is the transaction of a file that bbolt has made, and nobody has
// written to.
const unmadeTx = 1

// openReadOnly opens a file that is not empty, if it is ours, or new, and whole.
func openReadOnly(path string) (db *bbolt.DB, err error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it %w: it is no file", siltstone.ErrForeign)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	err = guard(func() error {
		db, err = bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: 1}) // do not wait for the lock
		if err != nil {
			return err
		}
		info, err := file.Stat() // again, now that it is locked
		if err != nil {
			return err
		}
		return db.View(func(tx *bbolt.Tx) error {
			if err := checkRoots(file, int64(db.Info().PageSize)); err != nil {
				return err
			}
			if err := checkPages(tx, file, info.Size()); err != nil {
				return err
			}
			if err := checkFormat(tx); err != nil || tx.ID() <= unmadeTx && tx.Bucket(metaBucket) == nil {
				return err
			}
			return checkWhole(tx)
		})
	})
	if err != nil {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
		return nil, err
	}
	return db, nil
}

// checkFormat takes a file without any bucket for a new one.
func checkFormat(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		if name, _ := tx.Cursor().First(); name != nil {
			return fmt.Errorf("it %w: it holds %.64q", siltstone.ErrForeign, name)
		}
		return nil
	}
	format := meta.Get(formatKey)
	if len(format) != 4 {
		return fmt.Errorf("format version of %d bytes: %w", len(format), siltstone.ErrCorrupt)
	}
	switch v := binary.BigEndian.Uint32(format); {
	case v > formatVersion:
		return fmt.Errorf("format %d, this release knows %d: %w", v, formatVersion, siltstone.ErrNewerFormat)
	case v != formatVersion:
		return fmt.Errorf("format %d: %w", v, siltstone.ErrCorrupt)
	}
	return nil
}

func openInspected(path string) (db *bbolt.DB, durable int, err error) {
	err = guard(func() error {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: 1, // do not wait for the lock
			// The list of free pages is found again at open, by a walk through
			// the file; it is not written with every commit.
			NoFreelistSync: true,
			FreelistType:   bbolt.FreelistMapType,
			// Room to grow without mapping the file anew, for which a writer
			// would wait for all readers. It costs address space, no memory.
			InitialMmapSize: 1 << 30,
			NoStatistics:    true,
		})
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	// Twice, so that neither of the two roots of a new file, of which the
	// older is used where the newer is damaged, has a list of free pages.
	for range 2 {
		err = guard(func() error {
			durable, err = prepare(db)
			return err
		})
		if err != nil {
			break
		}
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path)) // it may be new
	}
	if err != nil {
		return nil, 0, errors.Join(err, db.Close())
	}
	return db, durable, nil
}

// prepare stamps a new file, forgets old tombstones, and commits a transaction
// in any case, so that what the file says is on disk: an earlier process may
// have died before it was.
func prepare(db *bbolt.DB) (durable int, err error) {
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := checkFormat(tx); err != nil { // again, now that it is locked
			return err
		}
		for _, name := range topBuckets {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		if err := forgetTombstones(tx.Bucket(registerBucket), time.Now().Add(-tombstoneLife)); err != nil {
			return err
		}
		sum, err := sumRegisters(tx)
		if err != nil {
			return err
		}
		meta := tx.Bucket(metaBucket)
		opened := uint64(1)
		if b := meta.Get(openedKey); len(b) == 8 {
			opened += binary.BigEndian.Uint64(b)
		}
		durable = tx.ID()
		return errors.Join(
			meta.SetSequence(sum),
			meta.Put(formatKey, binary.BigEndian.AppendUint32(nil, formatVersion)),
			meta.Put(openedKey, binary.BigEndian.AppendUint64(nil, opened)))
	})
	return durable, err
}

// guard turns what a damaged file makes bbolt and the memory map do, panics
// and faults, into siltstone.ErrCorrupt.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", siltstone.ErrCorrupt, r)
		}
	}()
	return do()
}

// syncFolder makes the name of a new file last.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
