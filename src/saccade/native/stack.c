/* ---- a stack of Transformer blocks: whole texts that look at themselves, or texts that are written further ---- */

#define SHARP 16 /* the likeliest logits of a row, which have all bits where the others are rounded to bytes */

typedef struct {
    Norm around_self, around_cross, around_feedforward;
    Linear project, out, query, cross_out, widen, narrow;
    int window; /* how many positions a token looks back over, its own counted; 0: all */
} Layer;

typedef struct {
    int layers, width, heads, key_heads, feedforward, post, activation, gated, cross;
    const Layer *layer;
    const Norm *last; /* NULL when the blocks end in a norm of their own */
    const Linear *head; /* NULL for an encoder */
    const float *rotary_table; /* rotary positions: for each, the cosines of a head's pairs, then their sines; or NULL */
    int halves;         /* channel i turns with i + size / 2, not 2i with 2i + 1 */
    const Linear *int8_head; /* the head in bytes, or NULL: then only the likeliest logits have all bits */
} Stack;

/* Rows are new tokens, those of a text one after the other: no row is padding. */
typedef struct {
    int rows, texts;
    float *x;                 /* rows x width: embedded tokens in, states out */
    const int32_t *starts;    /* texts + 1: the first row of each text, and the number of all; NULL: a row a text */
    const int32_t *positions; /* rows: where each token stands; for rotary positions */
    int longest;              /* keys of any text, at most */
    /* a decoder's past: a pool of slots, and every text a list of places in it, its newest last. No pool: an encoder */
    float *pool;              /* layers x capacity x (key, value) */
    int64_t capacity;
    const int32_t *places;    /* texts x places_per_text */
    const int32_t *lengths;   /* of the texts, new tokens counted */
    int places_per_text;
    /* what a decoder looks at: of each memory, layer 0's first (key, value), how far to the next layer's, and how many */
    const float *const *memories;
    const int64_t *memory_strides;
    const int32_t *sources;
    int longest_source;
    const int32_t *memory_of; /* which memory each text looks at */
    /* rows whose logits are wanted, or NULL: all */
    const int32_t *wanted;
    int wanted_count;
    float *logits;            /* wanted x vocabulary */
} Job;

typedef struct {
    const Stack *stack;
    const Job *job;
    int size, key_width, together; /* together: some text has several new rows */
    int alone;                     /* else, and every query head has keys of its own */
    Rounded rounded, bytes;
    float *wide, *context, *room;
    int64_t room_floats; /* of every thread */
    atomic_int *next;    /* of each layer's two attentions: the next text's head that nobody has taken */
    Meeting *meeting;
} Run;

INLINE int first_row(const Job *job, int text) { return job->starts ? job->starts[text] : text; }
INLINE int rows_of(const Job *job, int text) { return job->starts ? job->starts[text + 1] - job->starts[text] : 1; }

/* Before a sub-layer: the norm that closes the one before it (post-norm), its own norm (pre-norm), rounding. */
static void enter(const Run *run, const Norm *norm, const Norm *pending, float *spare, int thread, int threads) {
    int from, to, width = run->stack->width;
    share(run->job->rows, thread, threads, &from, &to);
    for (int r = from; r < to; r++) {
        float *x = run->job->x + (int64_t)r * width, *y = x;
        if (pending) normalise(pending, x, width, x);
        if (norm) normalise(norm, x, width, y = spare);
        round_row(y, width, &run->rounded, r);
    }
}

/* Pairs of channels of each head turned by the angles of one position (Su et al. 2021, 3.2). */
static void turn(const Run *run, float *x, int heads, int row) {
    int size = run->size, halves = run->stack->halves;
    int pairs = size / 2, apart = halves ? pairs : 1, step = halves ? 1 : 2;
    const float *angles = run->stack->rotary_table + (int64_t)run->job->positions[row] * size;
    for (int h = 0; h < heads; h++, x += size)
        for (int i = 0; i < pairs; i++) {
            float *one = x + i * step, *other = one + apart, was = *one;
            *one = was * angles[i] - *other * angles[pairs + i];
            *other = was * angles[pairs + i] + *other * angles[i];
        }
}

INLINE int projected_width(const Run *run) { return run->stack->width + 2 * run->key_width; }

/* This thread's share of the texts' new tokens: their queries and keys are turned, keys and values go into the pool. */
static void remember(const Run *run, int layer, int thread, int threads) {
    const Job *job = run->job;
    int from, to, width = run->stack->width, text = 0;
    share(job->rows, thread, threads, &from, &to);
    for (int row = from; row < to; row++) {
        float *mine = run->wide + (int64_t)row * projected_width(run);
        if (run->stack->rotary_table) {
            turn(run, mine, run->stack->heads, row);
            turn(run, mine + width, run->stack->key_heads, row);
        }
        if (!job->pool) continue;
        if (!job->starts) text = row;
        else while (job->starts[text + 1] <= row) text++;
        int place = job->lengths[text] - rows_of(job, text) + row - first_row(job, text);
        int64_t slot = job->places[(int64_t)text * job->places_per_text + place];
        memcpy(job->pool + ((int64_t)layer * job->capacity + slot) * 2 * run->key_width, mine + width,
               sizeof(float) * 2 * run->key_width);
    }
}

/* The same for some heads of a text's only new token, by the thread that then looks from them: nobody has to wait. Only
   where every query head has keys of its own. */
static void remember_heads(const Run *run, int layer, int text, int head, int count) {
    const Job *job = run->job;
    int width = run->stack->width, at = head * run->size;
    float *mine = run->wide + (int64_t)text * projected_width(run) + at;
    if (run->stack->rotary_table) {
        turn(run, mine, count, text);
        turn(run, mine + width, count, text);
    }
    int64_t slot = job->places[(int64_t)text * job->places_per_text + job->lengths[text] - 1];
    float *newest = job->pool + ((int64_t)layer * job->capacity + slot) * 2 * width + at;
    memcpy(newest, mine + width, sizeof(float) * count * run->size);
    memcpy(newest + width, mine + 2 * width, sizeof(float) * count * run->size);
}

/* What a text's tokens look at in their own text. */
static Sight own_sight(const Run *run, int layer, int text) {
    const Job *job = run->job;
    if (job->pool)
        return (Sight){.keys = job->pool + (int64_t)layer * job->capacity * 2 * run->key_width,
                       .stride = 2 * run->key_width, .to_value = run->key_width,
                       .places = job->places + (int64_t)text * job->places_per_text, .count = job->lengths[text]};
    return (Sight){.keys = run->wide + (int64_t)first_row(job, text) * projected_width(run) + run->stack->width,
                   .stride = projected_width(run), .to_value = run->key_width, .count = rows_of(job, text)};
}

static Sight memory_sight(const Run *run, int layer, int text) {
    const Job *job = run->job;
    int memory = job->memory_of[text], width = run->stack->width;
    return (Sight){.keys = job->memories[memory] + layer * job->memory_strides[memory], .stride = 2 * width,
                   .to_value = width, .count = job->sources[memory]};
}

/* One new token of a text, some heads side by side. `shared`: how many of them look at the same head of keys. */
static void look_from_one(const Run *run, Sight sight, int shared, int text, int head, int count, int64_t query_stride,
                          int window, float *room) {
    int size = run->size, row = first_row(run->job, text);
    if (window && sight.count > window) {
        sight.places ? (void)(sight.places += sight.count - window)
                     : (void)(sight.keys += (sight.count - window) * sight.stride);
        sight.count = window;
    }
    sight.keys += head / shared * size;
    attend(size, shared, head % shared, count, run->wide + row * query_stride + head * size, sight, room,
           run->context + (int64_t)row * run->stack->width + head * size);
}

/* All new tokens of a text, one head. */
static void look_from_all(const Run *run, Sight sight, int shared, int text, int head, int64_t query_stride,
                          int causal, int window, float *room) {
    int size = run->size, rows = rows_of(run->job, text), width = run->stack->width;
    int64_t row = first_row(run->job, text);
    sight.keys += head / shared * size;
    Gathered all = gather(room, size, &sight);
    attend_all(&all, (Queries){.query = run->wide + row * query_stride + head * size, .query_stride = query_stride,
                               .context = run->context + row * width + head * size, .context_stride = width,
                               .sees = causal ? sight.count - rows + 1 : sight.count, .causal = causal,
                               .window = window}, rows);
}

/* Every text's heads look at its own tokens, or at its memory. Where all texts have one new token, a thread takes runs of
   heads side by side; else a head of a text at a time, as threads become free. How a text is looked at depends on its
   own new tokens alone, never on its neighbours. */
static void look(const Run *run, int layer, int at_memory, float *room, int thread, int threads) {
    const Job *job = run->job;
    int heads = run->stack->heads, window = at_memory ? 0 : run->stack->layer[layer].window;
    int shared = at_memory ? 1 : heads / run->stack->key_heads, causal = job->pool && !at_memory;
    int64_t query_stride = at_memory ? run->stack->width : projected_width(run);
    Sight (*sight_of)(const Run *, int, int) = at_memory ? memory_sight : own_sight;
    if (!run->together) {
        int from, to;
        share(job->texts * heads, thread, threads, &from, &to);
        for (int unit = from, count; unit < to; unit += count) {
            int text = unit / heads, head = unit % heads;
            count = heads - head < to - unit ? heads - head : to - unit;
            if (run->alone && !at_memory) remember_heads(run, layer, text, head, count);
            look_from_one(run, sight_of(run, layer, text), shared, text, head, count, query_stride, window, room);
        }
        return;
    }
    atomic_int *next = run->next + 2 * layer + at_memory;
    for (int unit; (unit = atomic_fetch_add(next, 1)) < job->texts * heads;) {
        int text = unit / heads, head = unit % heads;
        Sight sight = sight_of(run, layer, text);
        if (job->pool && rows_of(job, text) == 1)
            look_from_one(run, sight, shared, text, head, 1, query_stride, window, room);
        else
            look_from_all(run, sight, shared, text, head, query_stride, causal, window, room);
    }
}

/* The queries of looks at a memory, turned by where each token stands. */
static void turn_queries(const Run *run, int thread, int threads) {
    int from, to;
    share(run->job->rows, thread, threads, &from, &to);
    for (int row = from; row < to; row++)
        turn(run, run->wide + (int64_t)row * run->stack->width, run->stack->heads, row);
}

/* This thread's share of the rows between the two matrices of the feed-forward network. */
static void activate_rows(const Run *run, int thread, int threads) {
    const Stack *stack = run->stack;
    int from, to, inner = stack->feedforward;
    share(run->job->rows, thread, threads, &from, &to);
    for (int r = from; r < to; r++) {
        float *x = run->wide + (int64_t)r * inner * (stack->gated ? 2 : 1);
        activate(x, inner, stack->activation, stack->gated);
        round_row(x, inner, &run->rounded, r);
    }
}

/* Of this thread's share of the rows, the logits that may matter with all bits: the panels that hold the likeliest.
   Whole panels, for they are what is read at once. */
static void sharpen(const Run *run, int thread, int threads) {
    const Linear *head = run->stack->head;
    int from, to, last = -1;
    int64_t panel_bytes = (int64_t)padded(head->inputs) * LANES * (head->bits / 8), places[SHARP];
    float values[SHARP];
    Tile tile = {.layer = head, .steps = padded(head->inputs) / per_step(head->bits), .stride = run->rounded.stride};
    share(run->job->wanted_count, thread, threads, &from, &to);
    for (int r = from; r < to; r++) {
        float *y = run->job->logits + (int64_t)r * head->outputs;
        find_best(y, head->outputs, SHARP, values, places);
        tile.x = run->rounded.values + r * run->rounded.stride;
        tile.scales = run->rounded.scales + r, tile.excess = run->rounded.excess + r;
        for (int k = 0; k < SHARP; k++) {
            int panel = (int)(places[k] / LANES);
            for (last = 0; last < k && places[last] / LANES != panel; last++);
            if (last < k) continue; /* done already */
            tile.panel = (const char *)head->weights + panel * panel_bytes;
            tile.at = panel * LANES, tile.y = y + tile.at;
            multiply(1, &tile);
        }
    }
}

static void run_head(const Run *run, int thread, int threads) {
    const Stack *stack = run->stack;
    const Job *job = run->job;
    int from, to, count = job->wanted_count, width = stack->width;
    share(count, thread, threads, &from, &to);
    for (int r = from; r < to; r++) {
        const float *x = job->x + (int64_t)(job->wanted ? job->wanted[r] : r) * width;
        round_row(x, width, &run->rounded, r);
        if (stack->int8_head) round_row(x, width, &run->bytes, r);
    }
    meet(run->meeting, threads);
    if (!stack->int8_head) {
        linear_part(stack->head, run->rounded, count, job->logits, 0, thread, threads);
        return;
    }
    linear_part(stack->int8_head, run->bytes, count, job->logits, 0, thread, threads);
    meet(run->meeting, threads);
    sharpen(run, thread, threads);
}

static void run_part(const Run *run, int thread, int threads) {
    const Stack *stack = run->stack;
    const Job *job = run->job;
    int rows = job->rows, width = stack->width;
    float *room = run->room + thread * run->room_floats, *x = job->x;
    const Norm *pending = NULL;
    /* The norm of a sub-layer stands before it, or closes it and is done when the next one is entered. */
#define ENTER(NORM) \
    enter(run, stack->post ? NULL : (NORM), pending, room, thread, threads); \
    pending = stack->post ? (NORM) : NULL; \
    meet(run->meeting, threads)
#define LINEAR(LAYER, Y, ADD) \
    linear_part(LAYER, run->rounded, rows, Y, ADD, thread, threads); \
    meet(run->meeting, threads)
#define LEAVE(LAYER) \
    meet(run->meeting, threads); \
    round_rows(run->rounded, run->context, rows, width, thread, threads); \
    meet(run->meeting, threads); \
    LINEAR(LAYER, x, 1)
    for (int l = 0; l < stack->layers; l++) {
        const Layer *layer = stack->layer + l;
        ENTER(&layer->around_self);
        LINEAR(&layer->project, run->wide, 0);
        if (!run->alone && (job->pool || stack->rotary_table)) {
            remember(run, l, thread, threads);
            meet(run->meeting, threads);
        }
        look(run, l, 0, room, thread, threads);
        LEAVE(&layer->out);
        if (stack->cross) {
            ENTER(&layer->around_cross);
            LINEAR(&layer->query, run->wide, 0);
            if (stack->rotary_table) {
                turn_queries(run, thread, threads);
                meet(run->meeting, threads);
            }
            look(run, l, 1, room, thread, threads);
            LEAVE(&layer->cross_out);
        }
        ENTER(&layer->around_feedforward);
        LINEAR(&layer->widen, run->wide, 0);
        activate_rows(run, thread, threads);
        meet(run->meeting, threads);
        LINEAR(&layer->narrow, x, 1);
    }
    int from, to;
    share(rows, thread, threads, &from, &to);
    const Norm *last = pending ? pending : stack->last;
    if (last) for (int r = from; r < to; r++) normalise(last, x + (int64_t)r * width, width, x + (int64_t)r * width);
    if (stack->head) {
        meet(run->meeting, threads);
        run_head(run, thread, threads);
    }
#undef ENTER
#undef LINEAR
#undef LEAVE
}

/* All rows of a job by all threads together; 0, or 1 when memory ran out. */
static int run_together(const Stack *stack, const Job *job, int threads) {
    int width = stack->width, size = width / stack->heads, key_width = size * stack->key_heads;
    int widest = larger(larger(width + 2 * key_width, stack->feedforward * (stack->gated ? 2 : 1)), width);
    int longest = larger(job->longest, job->longest_source), together = !job->pool || job->starts != NULL;
    int64_t rows = job->rows, wanted = larger(job->rows, job->wanted_count);
    double weights = (double)width * (stack->cross ? 6 * width : 4 * width) + 2.0 * width * stack->feedforward;
    threads = enough(threads, rows * weights);
    Meeting meeting = {0};
    Run run = {.stack = stack, .job = job, .size = size, .key_width = key_width, .together = together, .meeting = &meeting};
    run.alone = !together && stack->key_heads == stack->heads;
    run.room_floats = larger(width, stack->heads * longest);
    if (together && attention_room(longest, size) > run.room_floats) run.room_floats = attention_room(longest, size);
    int inputs = larger(width, stack->feedforward);
    int64_t bytes = rounded_bytes(inputs, wanted) + (stack->int8_head ? rounded_bytes(width, wanted) : 0);
    bytes += (rows * (widest + width) + threads * run.room_floats) * sizeof(float) + 2 * stack->layers * sizeof(atomic_int);
    char *next = scratch(bytes + 5 * 64);
    if (!next) return 1;
    run.rounded = make_rounded(&next, inputs, wanted, stack->layer->project.bits);
    if (stack->int8_head) run.bytes = make_rounded(&next, width, wanted, stack->int8_head->bits);
    run.wide = part(&next, rows * widest * sizeof(float));
    run.context = part(&next, rows * width * sizeof(float));
    run.room = part(&next, threads * run.room_floats * sizeof(float));
    run.next = part(&next, 2 * stack->layers * sizeof(atomic_int));
    for (int i = 0; i < 2 * stack->layers; i++) atomic_init(run.next + i, 0);
#pragma omp parallel num_threads(threads)
    run_part(&run, omp_get_thread_num(), omp_get_num_threads());
    return 0;
}

/* Rows of whole texts that one thread takes at a time, about: few enough that all threads end at the same time, and
   enough for each matrix that is read. */
static int unit_rows(const Job *job, int threads) {
    int rows = job->rows / (4 * threads);
    return rows < 64 ? 64 : rows > 256 ? 256 : rows;
}

/* Where the unit ends that begins with `text`. */
static int unit_end(const Job *job, int text, int rows) {
    int end = text + 1;
    while (end < job->texts && first_row(job, end + 1) - first_row(job, text) <= rows) end++;
    return end;
}

/* Some texts of an encoder's job, as a job of its own; 0, or 1 when memory ran out. */
static int run_some(const Stack *stack, const Job *job, int text, int end) {
    int row = first_row(job, text), count = end - text;
    int32_t *starts = malloc(sizeof(int32_t) * (count + 1));
    if (!starts) return 1;
    for (int t = 0; t <= count; t++) starts[t] = job->starts[text + t] - row;
    Job some = *job;
    some.texts = count, some.starts = starts, some.rows = starts[count];
    some.x += (int64_t)row * stack->width, some.positions += row;
    int failed = run_together(stack, &some, 1);
    free(starts);
    return failed;
}

/* 0, or 1 when memory ran out. An encoder's texts know nothing of each other: where there are enough, each thread takes
   some through all layers at its own pace, and nobody has to wait for anybody between them. */
int run_stack(const Stack *stack, const Job *job, int threads) {
    int units = 0, rows = unit_rows(job, threads);
    if (!job->pool && job->starts && threads > 1)
        for (int text = 0; text < job->texts; text = unit_end(job, text, rows)) units++;
    if (units < 3 * threads) return run_together(stack, job, threads);
    atomic_int next = 0, failed = 0;
#pragma omp parallel num_threads(threads)
    for (int text; (text = atomic_load(&next)) < job->texts;) {
        int end = unit_end(job, text, rows);
        if (atomic_compare_exchange_strong(&next, &text, end) && run_some(stack, job, text, end)) atomic_store(&failed, 1);
    }
    return atomic_load(&failed);
}
