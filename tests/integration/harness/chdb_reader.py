"""chdb_reader.py LIBRARY FOLDER SQL: what chdb answers, as a program of its own would read it."""

import ctypes
import sys


def main(library, folder, sql):
    chdb = ctypes.CDLL(library)
    chdb.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
    chdb.chdb_query.restype = ctypes.c_void_p
    chdb.chdb_query.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    for name, kind in (("buffer", ctypes.c_void_p), ("length", ctypes.c_size_t), ("error", ctypes.c_char_p)):
        call = getattr(chdb, f"chdb_result_{name}")
        call.restype, call.argtypes = kind, [ctypes.c_void_p]
    words = [b"clickhouse", f"--path={folder}".encode()]
    connection = chdb.chdb_connect(len(words), (ctypes.c_char_p * len(words))(*words))
    if not connection or not connection[0]:
        sys.exit("cannot be opened")
    result = chdb.chdb_query(connection[0], sql.encode(), b"TabSeparated")
    error = chdb.chdb_result_error(result)
    if error:
        sys.exit(error.decode())
    sys.stdout.buffer.write(ctypes.string_at(chdb.chdb_result_buffer(result), chdb.chdb_result_length(result)))
    sys.stdout.flush()
    chdb.chdb_close_conn(connection)


main(*sys.argv[1:])
