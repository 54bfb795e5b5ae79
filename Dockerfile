# A prediction service for one model:
#   docker build -t kstonet-serve .
#   docker run --rm -p 8000:8000 -v "$PWD/model.kstonet:/model.kstonet:ro" kstonet-serve
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src
RUN pip install --no-cache-dir '/build[serve]' && rm -r /build && useradd --create-home kstonet
USER kstonet
ENV OPENBLAS_NUM_THREADS=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["kstonet", "serve", "/model.kstonet", "--host", "0.0.0.0", "--port", "8000"]
