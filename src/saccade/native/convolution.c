/* ---- convolutions over pictures: a window of every field, then what linear.c does with rows ---- */

typedef struct {
    const Linear *linear; /* its inputs are a window's fields, row by row, then their channels */
    const Norm *norm;     /* of every field, or NULL: batch norm is in the linear layer */
    int channels, kernel, down, across, pool_down, pool_across, activation; /* down, across: steps of the window */
} Convolution;

typedef struct {
    int pictures, height, width;
    const float *x;    /* [pictures, height, width, channels] */
    const float *real; /* 1 for every field before pooling that is of a picture, 0 for others; NULL: all are */
    const float *add;  /* what is added at the end, or NULL */
    float *y;
} Grids;

/* A picture in integers with zeros around it. All of it has one scale, so that it is rounded once and not once for every
   window; still its result does not depend on the pictures beside it. */
typedef struct {
    char *values;
    int32_t *sums; /* of each field's channels, where bytes are multiplied */
    float scale;
} Map;

typedef struct {
    const Convolution *convolution;
    const Grids *grids;
    int wide, high, out_high, out_wide, pooled_high, pooled_wide; /* wide, high: with the zeros around */
    int field_bytes, strip_rows, strips; /* pooled rows that are done at a time, and how many such strips a picture has */
    Map *maps;
    char *room;
    int64_t room_bytes;
    Meeting *meeting;
    atomic_int *next;
} Pass;

static int parts_of(int count, int size) { return (count + size - 1) / size; }

static void round_map(const Pass *pass, int picture) {
    const Convolution *convolution = pass->convolution;
    const Grids *grids = pass->grids;
    Map *map = pass->maps + picture;
    int bytes = in_bytes(convolution->linear->bits), largest = bytes ? 127 : 4095, margin = convolution->kernel / 2;
    int count = grids->width * convolution->channels;
    const float *x = grids->x + (int64_t)picture * grids->height * count;
    float most = 0;
    for (int row = 0; row < grids->height; row++) most = fmaxf(most, largest_size(x + (int64_t)row * count, count));
    map->scale = most / largest;
    memset(map->values, 0, (int64_t)pass->high * pass->wide * pass->field_bytes);
    for (int row = 0; row < grids->height; row++) {
        char *values = map->values + ((int64_t)(row + margin) * pass->wide + margin) * pass->field_bytes;
        round_numbers(x + (int64_t)row * count, count, most > 0 ? largest / most : 0, bytes, values);
    }
    if (!bytes) return;
    for (int field = 0; field < pass->high * pass->wide; field++) {
        const int8_t *values = (const int8_t *)map->values + (int64_t)field * pass->field_bytes;
        int32_t sum = 0;
        for (int c = 0; c < convolution->channels; c++) sum += values[c];
        map->sums[field] = sum;
    }
}

/* The windows of some rows of fields, side by side. */
static void lay_windows(const Pass *pass, const Map *map, int from, int to, Rounded *rounded) {
    const Convolution *convolution = pass->convolution;
    int kernel = convolution->kernel, bytes = in_bytes(convolution->linear->bits);
    int64_t part = (int64_t)kernel * pass->field_bytes, used = kernel * part;
    int64_t whole = (int64_t)padded(convolution->linear->inputs) * (bytes ? 1 : 2);
    for (int row = from, at = 0; row < to; row++)
        for (int column = 0; column < pass->out_wide; column++, at++) {
            char *window = rounded->values + at * rounded->stride;
            int64_t field = (int64_t)row * convolution->down * pass->wide + (int64_t)column * convolution->across;
            int32_t sum = 0;
            for (int k = 0; k < kernel; k++, field += pass->wide) {
                memcpy(window + k * part, map->values + field * pass->field_bytes, part);
                if (bytes) for (int i = 0; i < kernel; i++) sum += map->sums[field + i];
            }
            memset(window + used, 0, whole - used);
            rounded->scales[at] = map->scale;
            rounded->excess[at] = 128 * sum;
        }
}

/* The largest of each field's values; what is missing at an edge counts as zeros. */
static void pool_row(const Pass *pass, const float *fields, int rows, float *y) {
    const Convolution *convolution = pass->convolution;
    int width = convolution->linear->outputs;
    for (int column = 0; column < pass->pooled_wide; column++, y += width) {
        int first = column * convolution->pool_across, end = first + convolution->pool_across, begun = 0;
        if (rows < convolution->pool_down || end > pass->out_wide) memset(y, 0, width * sizeof(float)), begun = 1;
        end = end < pass->out_wide ? end : pass->out_wide;
        for (int row = 0; row < rows; row++)
            for (int at = first; at < end; at++, begun = 1) {
                const float *x = fields + ((int64_t)row * pass->out_wide + at) * width;
                if (begun) for (int i = 0; i < width; i++) y[i] = x[i] > y[i] ? x[i] : y[i];
                else memcpy(y, x, width * sizeof(float));
            }
    }
}

/* Some pooled rows of a picture, from `first` to before `last`. */
static void run_strip(const Pass *pass, int picture, int first, int last, char *room) {
    const Convolution *convolution = pass->convolution;
    const Grids *grids = pass->grids;
    const Linear *linear = convolution->linear;
    int width = linear->outputs, down = convolution->pool_down, pooled = down > 1 || convolution->pool_across > 1;
    int from = first * down, to = last * down < pass->out_high ? last * down : pass->out_high;
    int fields = (to - from) * pass->out_wide;
    Rounded rounded = make_rounded(&room, linear->inputs, fields, linear->bits);
    int64_t results = (int64_t)(last - first) * pass->pooled_wide;
    int64_t place = ((int64_t)picture * pass->pooled_high + first) * pass->pooled_wide * width;
    float *y = grids->y + place, *before = pooled ? part(&room, (int64_t)fields * width * sizeof(float)) : y;
    lay_windows(pass, pass->maps + picture, from, to, &rounded);
    linear_part(linear, rounded, fields, before, 0, 0, 1);
    const float *real = grids->real;
    if (real) real += ((int64_t)picture * pass->out_high + from) * pass->out_wide;
    for (int field = 0; field < fields; field++) {
        float *values = before + (int64_t)field * width;
        if (convolution->norm) normalise(convolution->norm, values, width, values);
        if (real && real[field] == 0) memset(values, 0, width * sizeof(float));
    }
    if (pooled)
        for (int row = first; row < last; row++) {
            int rows = to - row * down < down ? to - row * down : down;
            pool_row(pass, before + (int64_t)(row - first) * down * pass->out_wide * width, rows,
                     y + (int64_t)(row - first) * pass->pooled_wide * width);
        }
    activate(y, results * width, convolution->activation, 0);
    if (grids->add) for (int64_t i = 0; i < results * width; i++) y[i] += grids->add[place + i];
}

static void run_pass(const Pass *pass, int thread, int threads) {
    int from, to, all = pass->grids->pictures * pass->strips;
    share(pass->grids->pictures, thread, threads, &from, &to);
    for (int picture = from; picture < to; picture++) round_map(pass, picture);
    meet(pass->meeting, threads);
    for (int strip; (strip = atomic_fetch_add(pass->next, 1)) < all;) {
        int first = strip % pass->strips * pass->strip_rows, last = first + pass->strip_rows;
        last = last < pass->pooled_high ? last : pass->pooled_high;
        run_strip(pass, strip / pass->strips, first, last, pass->room + thread * pass->room_bytes);
    }
}

/* Convolution, norm, pooling, activation, sum; 0, or 1 when memory ran out. */
int run_convolution(const Convolution *convolution, const Grids *grids, int threads) {
    const Linear *linear = convolution->linear;
    int margin = convolution->kernel / 2, pictures = grids->pictures;
    Meeting meeting = {0};
    atomic_int next = 0;
    Pass pass = {.convolution = convolution, .grids = grids, .meeting = &meeting, .next = &next};
    pass.high = grids->height + 2 * margin, pass.wide = grids->width + 2 * margin;
    pass.out_high = parts_of(grids->height, convolution->down), pass.out_wide = parts_of(grids->width, convolution->across);
    pass.pooled_high = parts_of(pass.out_high, convolution->pool_down);
    pass.pooled_wide = parts_of(pass.out_wide, convolution->pool_across);
    pass.field_bytes = convolution->channels * (in_bytes(linear->bits) ? 1 : 2);
    int row_fields = convolution->pool_down * pass.out_wide;
    pass.strip_rows = larger(1, (int)(BLOCK_BYTES / stride_of(linear->inputs) / row_fields));
    pass.strips = parts_of(pass.pooled_high, pass.strip_rows);
    int64_t fields = (int64_t)pass.strip_rows * row_fields, map_fields = (int64_t)pass.high * pass.wide;
    threads = enough(threads, (double)pictures * pass.out_high * pass.out_wide * linear->inputs * linear->outputs);
    pass.room_bytes = rounded_bytes(linear->inputs, fields) + fields * linear->outputs * sizeof(float) + 2 * 64;
    pass.room_bytes = (pass.room_bytes + 63) / 64 * 64;
    int64_t map_bytes = (map_fields * pass.field_bytes + 63) / 64 * 64 + (map_fields * sizeof(int32_t) + 63) / 64 * 64;
    char *memory = scratch(pictures * (map_bytes + sizeof(Map)) + threads * pass.room_bytes + 4 * 64);
    if (!memory) return 1;
    pass.maps = part(&memory, pictures * sizeof(Map));
    for (int picture = 0; picture < pictures; picture++) {
        pass.maps[picture].values = part(&memory, map_fields * pass.field_bytes);
        pass.maps[picture].sums = part(&memory, map_fields * sizeof(int32_t));
    }
    pass.room = part(&memory, threads * pass.room_bytes);
#pragma omp parallel num_threads(threads)
    run_pass(&pass, omp_get_thread_num(), omp_get_num_threads());
    return 0;
}

/* For a test: the caller declares the same structures once more. */
void structure_sizes(int sizes[7]) {
    sizes[0] = sizeof(Linear), sizes[1] = sizeof(Norm), sizes[2] = sizeof(Layer), sizes[3] = sizeof(Stack);
    sizes[4] = sizeof(Job), sizes[5] = sizeof(Convolution), sizes[6] = sizeof(Grids);
}
