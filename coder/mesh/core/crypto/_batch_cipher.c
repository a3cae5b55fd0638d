/* Sealing and opening of many WireGuard transport datagrams in one call, outside of the interpreter's lock.
 *
 * Lives here: the loops over a batch, and what each datagram needs in them: header, nonce, tag.
 * Does not live here: the cipher, which is OpenSSL's (EVP, RFC 8439); the replay window and the allowed addresses
 * (tunnel/keypairs.py), which also has the same loops in Python for machines without this module.
 *
 * libcrypto is looked up when the module is imported, so that building needs neither its headers nor its library. The
 * one that Python's own modules use is in the process already, and the program ships it. Without it, or without one of
 * its functions, importing fails, and the caller does without (crypto/batches.py).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define TYPE_TRANSPORT 4 /* the WireGuard paper, section 5.4.6: also the form of header and nonce */
#define HEADER 16
#define TAG 16
#define OVERHEAD (HEADER + TAG)
#define KEY 32
#define NONCE 12
#define MOST 64           /* datagrams of one call of `open` */
#define UNLOCKED_FROM 8192 /* bytes: below, giving the lock up and taking it again costs more than others gain */
#define REJECT_AFTER_MESSAGES (UINT64_MAX - (1 << 13))
#define ADDRESSED 24 /* bytes of an IPv6 packet up to the end of its source address (RFC 8200, section 3) */
#define SOURCE 8
/* EVP_CTRL_AEAD_GET_TAG and _SET_TAG; stable since 1.1.0 */
#define CTRL_GET_TAG 0x10
#define CTRL_SET_TAG 0x11

static struct {
    void *(*ctx_new)(void);
    void (*ctx_free)(void *);
    void *(*fetch)(void *, const char *, const char *);
    int (*init)(void *, const void *, void *, const unsigned char *, const unsigned char *, int);
    int (*update)(void *, unsigned char *, int *, const unsigned char *, int);
    int (*final)(void *, unsigned char *, int *);
    int (*ctrl)(void *, int, int, void *);
    void (*clear_errors)(void);
} evp;
static void *cipher;

typedef struct {
    PyObject_HEAD
    void *sealing, *opening; /* contexts: made when first used, as a key is for one direction */
    int busy;                /* a context serves one thread at a time */
    unsigned char key[KEY];
} Cipher;

static void write_le(unsigned char *at, uint64_t value, int size) {
    for (int i = 0; i < size; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t read_le(const unsigned char *at, int size) {
    uint64_t value = 0;
    for (int i = size; i-- > 0;) value = value << 8 | at[i];
    return value;
}

static void write_nonce(unsigned char nonce[NONCE], uint64_t counter) {
    memset(nonce, 0, 4);
    write_le(nonce + 4, counter, 8);
}

static int seal_one(void *ctx, unsigned char *datagram, uint64_t size, uint32_t receiver, uint64_t counter) {
    unsigned char nonce[NONCE], *text = datagram + HEADER;
    int done;
    write_le(datagram, TYPE_TRANSPORT, 4);
    write_le(datagram + 4, receiver, 4);
    write_le(datagram + 8, counter, 8);
    write_nonce(nonce, counter);
    return evp.init(ctx, NULL, NULL, NULL, nonce, 1) > 0 && evp.update(ctx, text, &done, text, (int)size) > 0 &&
           evp.final(ctx, text + size, &done) > 0 && evp.ctrl(ctx, CTRL_GET_TAG, TAG, text + size) > 0;
}

static int open_one(void *ctx, const unsigned char *datagram, uint64_t size, uint64_t counter, unsigned char *out) {
    unsigned char nonce[NONCE], tag[TAG], rest[TAG];
    int done;
    memcpy(tag, datagram + HEADER + size, TAG);
    write_nonce(nonce, counter);
    if (evp.init(ctx, NULL, NULL, NULL, nonce, 0) > 0 && evp.ctrl(ctx, CTRL_SET_TAG, TAG, tag) > 0 &&
        evp.update(ctx, out, &done, datagram + HEADER, (int)size) > 0 && evp.final(ctx, rest, &done) > 0)
        return 1;
    evp.clear_errors(); /* or the next error of a TLS connection in this thread would be described by them */
    return 0;
}

/* Return the context of one direction, made when first used; NULL with an exception. */
static void *context(Cipher *self, int seals) {
    void **place = seals ? &self->sealing : &self->opening;
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread uses the cipher");
        return NULL;
    }
    if (!*place) {
        void *ctx = evp.ctx_new();
        if (!ctx || evp.init(ctx, cipher, NULL, self->key, NULL, seals) <= 0) {
            if (ctx) evp.ctx_free(ctx);
            evp.clear_errors();
            PyErr_SetString(PyExc_RuntimeError, "libcrypto refuses the cipher");
            return NULL;
        }
        *place = ctx;
    }
    return *place;
}

static PyObject *could_not_seal(void) {
    evp.clear_errors();
    PyErr_SetString(PyExc_RuntimeError, "libcrypto could not seal");
    return NULL;
}

static PyObject *seal(Cipher *self, PyObject *args) {
    Py_buffer buffer;
    Py_ssize_t packets, size, last;
    unsigned int receiver;
    unsigned long long counter;
    if (!PyArg_ParseTuple(args, "w*nnnIK", &buffer, &packets, &size, &last, &receiver, &counter)) return NULL;
    Py_ssize_t total = (packets - 1) * (size + OVERHEAD) + last + OVERHEAD;
    void *ctx = NULL;
    if (packets < 1 || packets > buffer.len || size < 0 || size > buffer.len || last < 0 || last > size ||
        total > buffer.len)
        PyErr_SetString(PyExc_ValueError, "the batch is not within the buffer");
    else
        ctx = context(self, 1);
    if (!ctx) {
        PyBuffer_Release(&buffer);
        return NULL;
    }
    PyThreadState *unlocked = total >= UNLOCKED_FROM ? (self->busy = 1, PyEval_SaveThread()) : NULL;
    unsigned char *at = buffer.buf;
    int good = 1;
    for (Py_ssize_t i = 0; i < packets && good; i++, at += size + OVERHEAD)
        good = seal_one(ctx, at, (uint64_t)(i == packets - 1 ? last : size), receiver, counter + (uint64_t)i);
    if (unlocked) PyEval_RestoreThread(unlocked);
    self->busy = 0;
    PyBuffer_Release(&buffer);
    return good ? PyLong_FromSsize_t(total) : could_not_seal();
}

static PyObject *seal_packet(Cipher *self, PyObject *args) {
    Py_buffer packet;
    Py_ssize_t size;
    unsigned int receiver;
    unsigned long long counter;
    PyObject *datagram = NULL;
    if (!PyArg_ParseTuple(args, "y*nIK", &packet, &size, &receiver, &counter)) return NULL;
    if (size < packet.len || size > INT32_MAX)
        PyErr_SetString(PyExc_ValueError, "the packet is larger than its plaintext");
    else if (context(self, 1) && (datagram = PyBytes_FromStringAndSize(NULL, size + OVERHEAD))) {
        unsigned char *at = (unsigned char *)PyBytes_AS_STRING(datagram);
        memcpy(at + HEADER, packet.buf, (size_t)packet.len);
        memset(at + HEADER + packet.len, 0, (size_t)(size - packet.len));
        if (!seal_one(self->sealing, at, (uint64_t)size, receiver, counter)) {
            Py_CLEAR(datagram);
            could_not_seal();
        }
    }
    PyBuffer_Release(&packet);
    return datagram;
}

/* What one call of `open` works on. */
struct run {
    int count, consecutive, alike;
    Py_ssize_t after;
    struct {
        const unsigned char *datagram;
        uint64_t size, counter;
        PyObject *plain;
        unsigned char *out;
        int genuine;
    } each[MOST];
};

/* Collect the datagrams of the run, and make room for their plaintexts; return whether there was memory. */
static int collect(struct run *run, const unsigned char *start, Py_ssize_t offset, Py_ssize_t total,
                   Py_ssize_t segment, uint32_t receiver, uint64_t expected) {
    run->count = 0;
    run->consecutive = 1;
    for (run->after = offset; run->after < total && run->count < MOST;) {
        const unsigned char *datagram = start + run->after;
        Py_ssize_t left = total - run->after, length = left < segment ? left : segment;
        if (length < OVERHEAD) {
            run->after = total;
            break;
        }
        uint64_t counter = read_le(datagram + 8, 8);
        if (read_le(datagram, 4) != TYPE_TRANSPORT || read_le(datagram + 4, 4) != receiver || counter < expected ||
            counter >= REJECT_AFTER_MESSAGES)
            break;
        int i = run->count;
        PyObject *plain = PyBytes_FromStringAndSize(NULL, length - OVERHEAD);
        if (!plain) return 0;
        run->consecutive &= counter == expected + (uint64_t)i;
        run->each[i].datagram = datagram;
        run->each[i].size = (uint64_t)(length - OVERHEAD);
        run->each[i].counter = counter;
        run->each[i].plain = plain;
        run->each[i].out = (unsigned char *)PyBytes_AS_STRING(plain);
        run->count++;
        run->after += length;
    }
    return 1;
}

static void decrypt(struct run *run, void *ctx) {
    run->alike = run->count > 0;
    for (int i = 0; i < run->count; i++) {
        const unsigned char *plain = run->each[i].out, *first = run->each[0].out;
        unsigned char none[1]; /* the empty bytes object is shared, and its zero must stay */
        unsigned char *out = run->each[i].size ? run->each[i].out : none;
        run->each[i].genuine = open_one(ctx, run->each[i].datagram, run->each[i].size, run->each[i].counter, out);
        run->consecutive &= run->each[i].genuine;
        /* Addresses are read only of plaintexts that have some; one without ends the comparison for the run. */
        run->alike = run->alike && run->each[i].genuine && run->each[i].size >= ADDRESSED && plain[0] >> 4 == 6 &&
                     !memcmp(plain + SOURCE, first + SOURCE, ADDRESSED - SOURCE);
    }
}

/* Return (offset after, plaintexts with None for forged ones, counters or None, alike), without ownership of `run`. */
static PyObject *answer(struct run *run) {
    PyObject *plaintexts = PyList_New(run->count), *counters = Py_None;
    if (!plaintexts) return NULL;
    for (int i = 0; i < run->count; i++) {
        PyObject *plain = run->each[i].genuine ? run->each[i].plain : Py_None;
        Py_INCREF(plain);
        PyList_SET_ITEM(plaintexts, i, plain);
    }
    if (run->consecutive)
        Py_INCREF(counters);
    else if ((counters = PyList_New(run->count)))
        for (int i = 0; i < run->count; i++) {
            PyObject *counter = PyLong_FromUnsignedLongLong(run->each[i].counter);
            if (!counter) {
                Py_CLEAR(counters);
                break;
            }
            PyList_SET_ITEM(counters, i, counter);
        }
    if (!counters) {
        Py_DECREF(plaintexts);
        return NULL;
    }
    return Py_BuildValue("(nNNN)", run->after, plaintexts, counters, PyBool_FromLong(run->alike));
}

static PyObject *open_(Cipher *self, PyObject *args) {
    Py_buffer buffer;
    Py_ssize_t offset, total, segment;
    unsigned int receiver;
    unsigned long long expected;
    struct run run;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*nnnIK", &buffer, &offset, &total, &segment, &receiver, &expected)) return NULL;
    void *ctx = NULL;
    if (offset < 0 || total > buffer.len || segment < 1)
        PyErr_SetString(PyExc_ValueError, "the run is not within the buffer");
    else
        ctx = context(self, 0);
    if (ctx) {
        run.count = 0;
        if (collect(&run, buffer.buf, offset, total, segment, receiver, expected)) {
            PyThreadState *unlocked =
                run.after - offset >= UNLOCKED_FROM ? (self->busy = 1, PyEval_SaveThread()) : NULL;
            decrypt(&run, ctx);
            if (unlocked) PyEval_RestoreThread(unlocked);
            self->busy = 0;
            result = answer(&run);
        }
        for (int i = 0; i < run.count; i++) Py_DECREF(run.each[i].plain);
    }
    PyBuffer_Release(&buffer);
    return result;
}

static PyObject *cipher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    const char *key;
    Py_ssize_t size;
    if (kwargs && PyDict_GET_SIZE(kwargs)) return PyErr_Format(PyExc_TypeError, "no keyword arguments");
    if (!PyArg_ParseTuple(args, "y#", &key, &size)) return NULL;
    if (size != KEY) return PyErr_Format(PyExc_ValueError, "a key has %d bytes", KEY);
    Cipher *self = (Cipher *)type->tp_alloc(type, 0);
    if (self) memcpy(self->key, key, KEY);
    return (PyObject *)self;
}

static void cipher_free(Cipher *self) {
    if (self->sealing) evp.ctx_free(self->sealing);
    if (self->opening) evp.ctx_free(self->opening);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"seal", (PyCFunction)seal, METH_VARARGS,
     "Seal a superbuffer's slots in place, headers included; return total bytes."},
    {"seal_packet", (PyCFunction)seal_packet, METH_VARARGS, "Return one datagram with a plaintext padded to a size."},
    {"open", (PyCFunction)open_, METH_VARARGS, "Open a run of datagrams with counters of at least the expected one."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, cipher_new}, {Py_tp_dealloc, cipher_free}, {Py_tp_methods, methods},
    {Py_tp_doc, "ChaCha20-Poly1305 with one key, for many datagrams in one call."}, {0, NULL},
};
static PyType_Spec spec = {"coder.mesh.core.crypto._batch_cipher.BatchCipher", sizeof(Cipher), 0, Py_TPFLAGS_DEFAULT,
                           slots};

/* Find libcrypto's functions and the cipher; return the library's version, or NULL with an ImportError. */
static const char *find_library(void) {
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library) library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) return PyErr_Format(PyExc_ImportError, "no libcrypto: %s", dlerror()), NULL;
    const char *(*version)(int) = NULL;
    struct {
        const char *name;
        void *place;
    } wanted[] = {
        {"EVP_CIPHER_CTX_new", &evp.ctx_new}, {"EVP_CIPHER_CTX_free", &evp.ctx_free},
        {"EVP_CIPHER_fetch", &evp.fetch},     {"EVP_CipherInit_ex", &evp.init},
        {"EVP_CipherUpdate", &evp.update},    {"EVP_CipherFinal_ex", &evp.final},
        {"EVP_CIPHER_CTX_ctrl", &evp.ctrl},   {"ERR_clear_error", &evp.clear_errors},
        {"OpenSSL_version", &version},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(library, wanted[i].name);
        if (!found) return PyErr_Format(PyExc_ImportError, "libcrypto has no %s", wanted[i].name), NULL;
        memcpy(wanted[i].place, &found, sizeof found); /* POSIX: as large as a pointer to a function */
    }
    cipher = evp.fetch(NULL, "ChaCha20-Poly1305", NULL);
    if (!cipher) {
        evp.clear_errors();
        return PyErr_Format(PyExc_ImportError, "libcrypto has no ChaCha20-Poly1305"), NULL;
    }
    return version(0);
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_batch_cipher", NULL, -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__batch_cipher(void) {
    const char *version = find_library();
    PyObject *module = version ? PyModule_Create(&definition) : NULL;
    PyObject *type = module ? PyType_FromSpec(&spec) : NULL;
    if (!type || PyModule_AddObjectRef(module, "BatchCipher", type) ||
        PyModule_AddStringConstant(module, "LIBRARY", version))
        Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
