// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A File is a Store in one file, which is written anew with each change: for fleets whose stocks are few.
type File struct {
	path string
	data fileData
}

type fileData struct {
	Epoch   uint64            `json:"epoch"`
	Records map[string][]byte `json:"records"`
}

// OpenFile opens a file, or makes it with the first epoch.
func OpenFile(path string) (*File, error) {
	f := &File{path: path, data: fileData{Records: map[string][]byte{}}}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &f.data)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return f, nil
}

// NextEpoch implements Store.
func (f *File) NextEpoch() (uint64, error) {
	f.data.Epoch++
	return f.data.Epoch, f.write()
}

// Load implements Store.
func (f *File) Load() ([]Record, error) {
	var all []Record
	for k, v := range f.data.Records {
		all = append(all, Record{k, v})
	}
	return all, nil
}

// Save implements Store.
func (f *File) Save(records []Record) error {
	for _, r := range records {
		if r.Value == nil {
			delete(f.data.Records, r.Key)
			continue
		}
		f.data.Records[r.Key] = r.Value
	}
	return f.write()
}

// write replaces the file by one that is complete.
func (f *File) write() error {
	b, err := json.Marshal(f.data)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), ".weir-*")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncDir(filepath.Dir(f.path))
}

// syncDir makes a renaming outlive a crash of the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
